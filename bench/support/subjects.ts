import { mkdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startServe, type ServeOptions } from '../../scripts/serve/start-serve.ts';
import { readCompatibility, serviceName } from '../../scripts/serve/workerd-config.ts';
import { startWorkerd } from '../../scripts/serve/workerd.ts';
import { serveApart, type Running } from './serve-apart.ts';
import { chatRequest } from './wire.ts';

const BARE_MODULE = fileURLToPath(new URL('bare-worker.js', import.meta.url));

/** A proxy that is measured. */
export interface Subject {
  readonly name: string;
  /** All its processes: their CPU counts together. */
  readonly pids: readonly number[];
  readonly port: number;
  /** Path of its chat completions. */
  readonly path: string;
  /** Request for a small answer, or for a stream of so many chunks. */
  readonly request: (streamChunks: number | null, chunkEveryMs?: number) => Buffer;
  stop(): Promise<void>;
}

/** How a bare Worker passes calls on; `bare-worker.js` says what each does. */
export type BareKind = 'native' | 'pipe' | 'lease' | 'socket';

const nameAsFolder = (name: string): string => name.replaceAll(/[^a-z0-9]+/gi, '-');

const compatibility = await readCompatibility();

function bareConfig(module: string, kind: BareKind, upstreamUrl: string): string {
  const { date, flags } = compatibility;
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "bare", worker = .bare),
    (name = "internet", network = (allow = ["public", "private"]))
  ],
  sockets = [(name = "${serviceName(0)}", address = "127.0.0.1:0", http = (), service = "bare")]
);

const bare :Workerd.Worker = (
  modules = [(name = "bare.js", esModule = embed ${JSON.stringify(module)})],
  compatibilityDate = ${JSON.stringify(date)},
  compatibilityFlags = [${flags.map((flag) => JSON.stringify(flag)).join(', ')}],
  durableObjectNamespaces = [(className = "Slots", uniqueKey = "Slots")],
  durableObjectStorage = (inMemory = void),
  bindings = [
    (name = "KIND", text = ${JSON.stringify(kind)}),
    (name = "UPSTREAM", text = ${JSON.stringify(upstreamUrl)}),
    (name = "SLOTS", durableObjectNamespace = "Slots")
  ],
  globalOutbound = "internet"
);
`;
}

/** Starts a bare Worker. */
export async function startBare(
  name: string,
  kind: BareKind,
  dir: string,
  upstreamUrl: string,
): Promise<Subject> {
  const dataDir = join(dir, nameAsFolder(name));
  await mkdir(dataDir, { recursive: true });
  const workerd = await startWorkerd({
    dataDir,
    config: bareConfig(relative(dataDir, BARE_MODULE), kind, upstreamUrl),
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
    request: (chunks, everyMs) => chatRequest(path, 'gpt-4o-mini', chunks, { everyMs }),
    stop: () => workerd.terminate(500),
  };
}

export interface SubjectsHeadgateOptions {
  readonly name: string;
  readonly dir: string;
  readonly upstreamUrl: string;
  /**
   * `configured`: a group matched by its upstream, so that no body is read. `automatic`: a group of
   * the table of known limits, whose model stands in the body.
   */
  readonly group: 'configured' | 'automatic';
  /** Joins the configured group, whose limit nobody reaches. */
  readonly settings?: object;
  /** Replaces the configuration, which knows one group and the automatic ones. */
  readonly config?: object;
  /** @default the admin routes are closed */
  readonly adminToken?: string;
  /** As operators run it: in a process of its own, with the forwarder, whose CPU counts too. @default false */
  readonly isServed?: boolean;
  /** Joins the environment of workerd. */
  readonly env?: NodeJS.ProcessEnv;
  /** Another built module than the project's. */
  readonly module?: string;
}

/** An upstream with a built-in limit of 2,500 for this model: nobody waits. */
const KNOWN_UPSTREAM = 'deepseek';
const KNOWN_MODEL = 'deepseek-v4-flash';

const configOf = ({ upstreamUrl, settings }: SubjectsHeadgateOptions): object => ({
  upstreams: [
    { id: 'bench', base_url: upstreamUrl, dialect: 'openai' },
    { id: KNOWN_UPSTREAM, base_url: upstreamUrl },
  ],
  groups: [
    {
      name: 'bench',
      match: { upstreams: ['bench'] },
      limits: { max_concurrency: 2_000 },
      ...settings,
    },
  ],
});

/** Starts Headgate as `serve` does; without the forwarder, unless that is asked for. */
export async function startHeadgate(options: SubjectsHeadgateOptions): Promise<Subject> {
  const { name, dir, group, isServed = false } = options;
  const given = {
    port: 0,
    dataDir: join(dir, nameAsFolder(name)),
    env: { ...process.env, ...options.env },
    config: options.config ?? configOf(options),
    ...(options.module === undefined ? {} : { module: options.module }),
    ...(options.adminToken === undefined ? {} : { adminToken: options.adminToken }),
  };
  const onLog = (line: string): void => console.error(`${name}: ${line}`);
  const running: Running = isServed
    ? await serveApart(given)
    : await serveHere({ ...given, onLog });
  const [upstream, model] =
    group === 'configured' ? ['bench', 'gpt-4o-mini'] : [KNOWN_UPSTREAM, KNOWN_MODEL];
  const path = `/${upstream}/v1/chat/completions`;
  return {
    name,
    path,
    ...running,
    request: (chunks, everyMs) => chatRequest(path, model, chunks, { everyMs }),
  };
}

async function serveHere(options: ServeOptions): Promise<Running> {
  const serve = await startServe({ ...options, forwarder: false });
  const port = Number(new URL(serve.url).port);
  return { pids: [serve.workerdPid()], port, stop: () => serve.stop() };
}
