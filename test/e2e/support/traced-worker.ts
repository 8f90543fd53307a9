import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { ensureBuilt } from '../../../scripts/serve/build.ts';
import { BODY_MEMORY_MIB } from '../../../scripts/serve/body-memory.ts';
import { readCompatibility, workerdConfig } from '../../../scripts/serve/workerd-config.ts';
import { noteOutput } from '../../support/violations.ts';

const { default: workerdBinary } = createRequire(import.meta.url)('workerd') as { default: string };

/** Prints every attribute of a span, as an exporter on the platform would send it. Some of workerd's are bigints. */
const EXPORTER = `
const plain = (_name, value) => (typeof value === 'bigint' ? Number(value) : value);
export default { tailStream: () => ({ event }) => {
  if (event.type === 'attributes') console.log('ATTRIBUTES ' + JSON.stringify(event.info, plain));
} };
`;

const EXPORTER_SERVICE = `
const exporter :Workerd.Worker = (
  modules = [(name = "exporter.js", esModule = embed "exporter.js")],
  compatibilityDate = "2026-09-18",
  compatibilityFlags = ["streaming_tail_worker"]
);
`;

export interface TracedWorker {
  readonly url: string;
  /** Attributes that were noted on spans, by name; the last of a name. */
  attributes(): ReadonlyMap<string, unknown>;
  stop(): void;
}

/** The built Worker on plain workerd, whose traces go to an exporter: `serve` has none. */
export async function startTracedWorker(folder: string, token: string): Promise<TracedWorker> {
  await mkdir(join(folder, 'objects'), { recursive: true });
  const config = workerdConfig({
    module: relative(folder, await ensureBuilt()),
    objectsDir: join(folder, 'objects'),
    workers: 1,
    dashboardDir: null,
    bootId: 'traced',
    bodyMemoryMib: BODY_MEMORY_MIB,
    allowedHosts: null,
    cfHeader: 'traced-cf',
    fromEnvironment: ['ADMIN_TOKEN'],
    compatibility: await readCompatibility(),
  })
    .replace('services = [', 'services = [(name = "exporter", worker = .exporter),')
    .replace('globalOutbound =', 'streamingTails = ["exporter"], globalOutbound =');
  const path = join(folder, 'workerd.capnp');
  await writeFile(path, config + EXPORTER_SERVICE);
  await writeFile(join(folder, 'exporter.js'), EXPORTER);
  const child = spawn(
    workerdBinary,
    ['serve', '--experimental', '--control-fd=3', path, 'config'],
    {
      env: { ...process.env, ADMIN_TOKEN: token },
      stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    },
  );
  const [, printed, , control] = child.stdio as Readable[];
  if (printed === undefined || control === undefined) throw new Error('workerd has no pipes.');
  const attributes = new Map<string, unknown>();
  createInterface({ input: printed }).on('line', (line) => {
    noteOutput(line);
    const [, text] = /^ATTRIBUTES (.*)$/.exec(line) ?? [];
    if (text === undefined) return;
    for (const { name, value } of JSON.parse(text) as { name: string; value: unknown }[]) {
      attributes.set(name, value);
    }
  });
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', () => reject(new Error('workerd has ended.')));
    createInterface({ input: control }).on('line', (line) => {
      const message = JSON.parse(line) as { event: string; port?: number };
      if (message.event === 'listen') resolve(message.port ?? 0);
    });
  });
  return {
    url: `http://127.0.0.1:${port}`,
    attributes: () => attributes,
    stop: () => void child.kill('SIGKILL'),
  };
}
