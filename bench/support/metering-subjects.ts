import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT, WRANGLER } from '../../scripts/serve/build.ts';
import { readCompatibility, serviceName } from '../../scripts/serve/workerd-config.ts';
import { startWorkerd } from '../../scripts/serve/workerd.ts';
import type { Subject } from './subjects.ts';
import { chatRequest } from './wire.ts';

const WORKER = fileURLToPath(new URL('metering-worker.js', import.meta.url));

/** How a body is piped: natively, in JavaScript, with a meter, and with the usage chunk taken out. */
export type PipeKind = 'native' | 'watched' | 'metered' | 'dropping';

const compatibility = await readCompatibility();

/** Builds the Worker into a folder, without the objects of the project; the answer is its module's path. */
export async function buildMeteringWorker(dir: string): Promise<string> {
  const config = join(dir, 'wrangler.json');
  const { date, flags } = compatibility;
  await mkdir(dir, { recursive: true });
  await writeFile(
    config,
    JSON.stringify({
      name: 'metering',
      main: WORKER,
      compatibility_date: date,
      compatibility_flags: flags,
    }),
  );
  const args = [WRANGLER, 'deploy', '--config', config, '--dry-run', '--outdir', dir];
  const env = { ...process.env, WRANGLER_SEND_METRICS: 'false' };
  const built = spawnSync(process.execPath, args, { cwd: ROOT, env, encoding: 'utf8' });
  if (built.status !== 0) throw new Error(`The build failed:\n${built.stdout}${built.stderr}`);
  return join(dir, 'metering-worker.js');
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
  return {
    name,
    pid: workerd.pid,
    port: workerd.ports[0] ?? 0,
    request: (chunks) => chatRequest('/v1/chat/completions', 'gpt-4o-mini', chunks),
    stop: () => workerd.terminate(500),
  };
}
