import { mkdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readCompatibility, serviceName } from '../../scripts/serve/workerd-config.ts';
import { startWorkerd } from '../../scripts/serve/workerd.ts';
import { buildWorker } from '../../test/support/build-worker.ts';
import type { Subject } from './subjects.ts';
import { chatRequest } from './wire.ts';

const WORKER = fileURLToPath(new URL('metering-worker.js', import.meta.url));

/**
 * How a body is piped: natively, natively and looked at, the same with the reports of usage read, the same with all text
 * counted, in JavaScript, and there with the usage chunk taken out.
 */
export type PipeKind = 'native' | 'observed' | 'metered' | 'estimated' | 'watched' | 'dropping';

const compatibility = await readCompatibility();

/** Builds the Worker into a folder, without the objects of the project; the answer is its module's path. */
export function buildMeteringWorker(dir: string): Promise<string> {
  return buildWorker(WORKER, dir);
}

function configOf(module: string, kind: PipeKind, upstreamUrl: string): string {
  const { date, flags } = compatibility;
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "metering", worker = .metering),
    (name = "internet", network = (allow = ["public", "private"]))
  ],
  sockets = [
    (name = "${serviceName(0)}", address = "127.0.0.1:0", http = (), service = "metering")
  ]
);

const metering :Workerd.Worker = (
  modules = [(name = "metering.js", esModule = embed ${JSON.stringify(module)})],
  compatibilityDate = ${JSON.stringify(date)},
  compatibilityFlags = [${flags.map((flag) => JSON.stringify(flag)).join(', ')}],
  bindings = [
    (name = "KIND", text = ${JSON.stringify(kind)}),
    (name = "UPSTREAM", text = ${JSON.stringify(upstreamUrl)})
  ],
  globalOutbound = "internet"
);
`;
}

/** Starts the Worker on a workerd of its own. */
export async function startPipe(
  name: string,
  kind: PipeKind,
  { dir, module, upstreamUrl }: { dir: string; module: string; upstreamUrl: string },
): Promise<Subject> {
  const dataDir = join(dir, kind);
  await mkdir(dataDir, { recursive: true });
  const workerd = await startWorkerd({
    dataDir,
    config: configOf(relative(dataDir, module), kind, upstreamUrl),
    workers: 1,
    env: process.env,
    onLog: (line) => console.error(`${name}: ${line}`),
  });
  const path = '/v1/chat/completions';
  return {
    name,
    pids: [workerd.pid],
    port: workerd.ports[0] ?? 0,
    path,
    request: (chunks) => chatRequest(path, 'gpt-4o-mini', chunks),
    stop: () => workerd.terminate(500),
  };
}
