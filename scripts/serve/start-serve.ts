import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { FirstImport } from './admin-client.ts';
import {
  callsInFlight,
  ConfigRefused,
  hasGatewayKeys,
  importFirst,
  NOT_IMPORTED,
  untilReady,
  untilRouted,
} from './admin-client.ts';
import { folderToken, forgetFolderToken, type FolderToken } from './admin-token.ts';
import { allowedHosts } from './allowed-hosts.ts';
import { BODY_MEMORY_MIB } from './body-memory.ts';
import { BUILT_DASHBOARD, ensureBuilt } from './build.ts';
import { proxyList } from './client-connections.ts';
import { lockFolder } from './folder-lock.ts';
import type { Forwarder } from './forwarder.ts';
import { startForwarder } from './forwarder.ts';
import { CF_HEADER, readCompatibility, workerdConfig } from './workerd-config.ts';
import type { KeptRunning } from './keep-running.ts';
import type { LocationVariables } from '../../src/env.ts';
import { wrongPlace } from '../../src/runtime/deployment.ts';
import { cleanSecret, refusedSecrets } from '../../src/runtime/secrets.ts';
import { keepRunning } from './keep-running.ts';
import { repeatFilter, shutdownFilter } from './log-lines.ts';
import { clientsMax } from './open-files.ts';
import { makePrivate } from './private-folder.ts';
import { endIdleSockets, writeAll } from './notify-stopping.ts';
import type { WorkerdProcess } from './workerd.ts';
import { startWorkerd } from './workerd.ts';

/** Environment variables that become bindings of the Worker. ADMIN_TOKEN is handled separately. */
const PASSED_ON =
  /^((UPSTREAM|WEBHOOK)_[A-Z0-9_]+|METRICS_TOKEN|ACCESS_(TEAM_DOMAIN|AUD|ROLE)|JURISDICTION|DIRECTORY_LOCATION)$/;

export interface ServeOptions {
  /** Port of the first Worker service. 0 means any free port. */
  readonly port: number;
  /** @default 127.0.0.1 */
  readonly host?: string;
  /** Host names to serve on a loopback address in addition to `localhost` and its addresses. @default none */
  readonly allowHosts?: readonly string[];
  /** The data folder. It is created if it is missing, and made private. */
  readonly dataDir: string;
  /** Environment of workerd. Variables that match `PASSED_ON` become bindings. @default that of this process */
  readonly env?: NodeJS.ProcessEnv;
  /**
   * With false, clients connect to workerd directly. It does not notice every disconnect, and it is not restarted.
   * @default true
   */
  readonly forwarder?: boolean;
  /** Token of the admin routes. @default ADMIN_TOKEN of the environment; without it `keepsAdminToken` applies */
  readonly adminToken?: string;
  /**
   * Without ADMIN_TOKEN, use a token that the first start generates and stores in the data folder. With false, the
   * admin routes are disabled.
   * @default false
   */
  readonly keepsAdminToken?: boolean;
  /** JSON or YAML file, imported if no configuration was ever written. */
  readonly configFile?: string;
  /** The configuration to import, as a value. */
  readonly config?: unknown;
  /** Memory for the bodies of calls in each Worker service, in MiB. @default BODY_MEMORY_MIB */
  readonly bodyMemoryMib?: number;
  /** Addresses of reverse proxies, as `proxyList` parses them. Loopback always counts as one. @default none */
  readonly trustedProxies?: readonly string[];
  /** Number of Worker services, which share the objects and have their own URLs. @default 1 */
  readonly workers?: number;
  /** Opens workerd's inspector, for memory measurements. @default false */
  readonly inspector?: boolean;
  /** Path of a built module that replaces the project's. */
  readonly module?: string;
  /** Receives every line that workerd prints. `logs` also returns them. */
  readonly onLog?: (line: string) => void;
}

/** A Headgate on plain workerd. */
export interface Serve {
  /** Base URL, without a trailing slash. */
  readonly url: string;
  /** One per Worker service. */
  readonly urls: readonly string[];
  /** Process id of workerd. It changes after a crash. */
  workerdPid(): number;
  /** Port of workerd's inspector. null if it is not open. */
  inspectorPort(): number | null;
  /** Whether the given configuration was imported. false if a configuration existed already. */
  readonly imported: boolean;
  /** Warnings of the admin API about the imported configuration. */
  readonly warnings: readonly string[];
  /** The token of the data folder, if the admin routes use it. */
  readonly folderToken: FolderToken | null;
  /** Whether gateway keys were configured at the start. Without them every caller is accepted. */
  readonly hasGatewayKeys: boolean;
  /** The latest lines that workerd printed. */
  logs(): string;
  /** Accepts no more connections, waits for calls in flight for at most `drainMs`, and ends workerd. */
  stop(options?: { readonly drainMs?: number }): Promise<void>;
  /** Kills workerd as a power failure would, and closes the port. */
  kill9(): Promise<void>;
}

const LOG_LINES_MAX = 20_000;
const DRAIN_POLL_MS = 25;

/** How long workerd may take to exit after SIGTERM. */
const TERM_WAIT_MS = 2_000;
const NO_DRAIN_TERM_WAIT_MS = 500;

/** How long bytes that workerd has written may take to reach the client. */
const FLUSH_MS = 50;

interface ServeParts {
  readonly kept: KeptRunning;
  /** Empty if clients connect to workerd directly. */
  readonly forwarders: readonly Forwarder[];
  readonly onStopping: () => void;
  /** As in `WorkerdSettings`. */
  readonly cfHeader: string;
}

const directUrls = ({ ports }: WorkerdProcess): string[] =>
  ports.map((port) => `http://127.0.0.1:${port}`);

/** Waits until no call is in flight. */
async function drain(workerd: WorkerdProcess, drainMs: number): Promise<void> {
  const deadline = performance.now() + drainMs;
  let hasEnded = false;
  const ended = workerd.ended.then(() => {
    hasEnded = true;
  });
  while (performance.now() < deadline && !hasEnded) {
    const counts = await Promise.all(directUrls(workerd).map(callsInFlight));
    // A service that is too busy to respond has calls in flight.
    if (counts.every((count) => count === 0)) return;
    await Promise.race([delay(DRAIN_POLL_MS), ended]);
  }
}

async function stopParts(parts: ServeParts, drainMs: number): Promise<void> {
  const { kept, forwarders, onStopping, cfHeader } = parts;
  onStopping();
  for (const forwarder of forwarders) forwarder.stopAccepting();
  const workerd = await kept.letGo();
  if (drainMs > 0 && workerd !== null) {
    await Promise.all(workerd.ports.map((port) => endIdleSockets(port, cfHeader)));
    await drain(workerd, drainMs);
    await Promise.all(workerd.ports.map((port) => writeAll(port, cfHeader)));
    await delay(FLUSH_MS);
    // workerd closes idle connections in an orderly way, and the forwarders forward the close.
    await workerd.terminate(TERM_WAIT_MS);
  }
  await Promise.all(forwarders.map((forwarder) => forwarder.close()));
  await workerd?.terminate(NO_DRAIN_TERM_WAIT_MS);
}

interface WorkerdSettings {
  readonly options: ServeOptions;
  readonly adminToken: string | null;
  /** Path of the built module. */
  readonly module: string;
  /** A secret of the forwarders and workerd, because a client that knows it could claim any address. */
  readonly cfHeader: string;
  readonly onLog: (line: string) => void;
}

async function startRuntime(
  { options, adminToken, module, cfHeader, onLog }: WorkerdSettings,
  givenUp?: AbortSignal,
): Promise<WorkerdProcess> {
  const dataDir = resolve(options.dataDir);
  const environment = options.env ?? process.env;
  // Without a usable token, the Worker reads the given one to report why the admin routes are disabled.
  const token = adminToken ?? options.adminToken ?? environment['ADMIN_TOKEN'];
  const env: NodeJS.ProcessEnv = { ...environment, ADMIN_TOKEN: token };
  const workers = options.workers ?? 1;
  const config = workerdConfig({
    module: relative(dataDir, module),
    objectsDir: resolve(dataDir, 'objects'),
    workers,
    // workerd does not start if a folder that it serves is missing.
    dashboardDir: existsSync(BUILT_DASHBOARD) ? BUILT_DASHBOARD : null,
    // Each process has its own id, also after a crash, because leases of the previous process ended with it.
    bootId: randomBytes(9).toString('base64url'),
    bodyMemoryMib: options.bodyMemoryMib ?? BODY_MEMORY_MIB,
    allowedHosts: await allowedHosts(options.host ?? '127.0.0.1', options.allowHosts ?? []),
    cfHeader: CF_HEADER,
    fromEnvironment: Object.keys(env).filter((name) =>
      name === 'ADMIN_TOKEN' ? token !== undefined : PASSED_ON.test(name),
    ),
    compatibility: await readCompatibility(),
  });
  const inspector = options.inspector ?? false;
  const given = givenUp && { givenUp };
  const hidden = { written: CF_HEADER, meant: cfHeader };
  return startWorkerd({ dataDir, config, hidden, workers, env, inspector, onLog, ...given });
}

async function listen(
  { options, cfHeader, onLog }: WorkerdSettings,
  ports: readonly number[],
): Promise<Forwarder[]> {
  if (options.forwarder === false) return [];
  const { host = '127.0.0.1', port, trustedProxies = [] } = options;
  const forwarders: Forwarder[] = [];
  const shared = { host, cfHeader, proxies: proxyList(trustedProxies), onLog };
  const each = Math.floor((await clientsMax()) / ports.length);
  try {
    for (const [index, targetPort] of ports.entries()) {
      const wanted = index === 0 ? port : 0;
      forwarders.push(
        await startForwarder({ ...shared, port: wanted, targetPort, clientsMax: each }),
      );
    }
    return forwarders;
  } catch (error) {
    await Promise.all(forwarders.map((forwarder) => forwarder.close()));
    throw error;
  }
}

async function importConfig(
  options: ServeOptions,
  url: string,
  adminToken: string | null,
): Promise<FirstImport> {
  const { config, configFile } = options;
  if (adminToken === null) return NOT_IMPORTED;
  const target = { url, adminToken };
  if (config !== undefined) {
    return importFirst(target, JSON.stringify(config), 'application/json');
  }
  if (configFile === undefined) return NOT_IMPORTED;
  const text = await readFile(configFile, 'utf8');
  const isJson = configFile.endsWith('.json');
  return importFirst(target, text, isJson ? 'application/json' : 'application/yaml');
}

/** Starts Headgate on plain workerd and resolves when it responds. It locks the data folder until it stops. */
export async function startServe(options: ServeOptions): Promise<Serve> {
  const wrong = wrongPlace((options.env ?? process.env) as LocationVariables);
  if (wrong !== null) throw new Error(wrong);
  const dataDir = resolve(options.dataDir);
  await makePrivate(dataDir, (line) => options.onLog?.(line));
  const lock = await lockFolder(dataDir);
  try {
    const serve = await startLocked(options);
    const releaseAfter = async (end: Promise<void>): Promise<void> => {
      await end;
      await lock.release();
    };
    return {
      ...serve,
      stop: (how) => releaseAfter(serve.stop(how)),
      kill9: () => releaseAfter(serve.kill9()),
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function startLocked(options: ServeOptions): Promise<Serve> {
  const env = options.env ?? process.env;
  for (const { secret, fault } of refusedSecrets(env)) {
    options.onLog?.(`The secret ${secret} ${fault}, so it is not used. Set it again and restart.`);
  }
  const { value, fault } = cleanSecret(options.adminToken ?? env['ADMIN_TOKEN']);
  if (value !== null) return run(options, value);
  // A given token that is unusable disables the routes, because a generated token would be unexpected.
  if (options.keepsAdminToken === true && fault === 'is not set') return runWithOwn(options);
  const { config, configFile, ...rest } = options;
  const imports = config !== undefined || configFile !== undefined;
  const outcome = imports ? await importAlone(options) : NOT_IMPORTED;
  const { imported, warnings } = outcome;
  return { ...(await run(rest, null)), imported, warnings };
}

/** Starts with the token of the data folder. A token that was generated for a failed start is removed. */
async function runWithOwn(options: ServeOptions): Promise<Serve> {
  const token = await folderToken(options.dataDir);
  try {
    return { ...(await run(options, token.value)), folderToken: token };
  } catch (error) {
    if (token.isNew) await forgetFolderToken(options.dataDir);
    throw error;
  }
}

/**
 * Imports the configuration in a short separate run with a random token. Without a token the admin routes are disabled
 * for the import too, and the final run must report them as disabled.
 */
async function importAlone(options: ServeOptions): Promise<Pick<Serve, 'imported' | 'warnings'>> {
  const { host: _host, ...rest } = options;
  const alone = { ...rest, port: 0, forwarder: false, workers: 1 };
  const serve = await run(alone, randomBytes(24).toString('base64url'));
  await serve.stop();
  return serve;
}

/**
 * Writes the configuration with `bringConfig`, waits until every Worker uses it, and returns the outcome of
 * `bringConfig`.
 */
async function prepare(
  workerd: WorkerdProcess,
  bringConfig: (url: string) => Promise<FirstImport>,
): Promise<FirstImport> {
  const urls = directUrls(workerd);
  let dead = false;
  const isDead = (): boolean => dead;
  workerd.ended.then(() => (dead = true)).catch(() => undefined);
  const ready = await Promise.all(urls.map((url) => untilReady(url, isDead)));
  if (!ready.every(Boolean)) throw new Error('The Worker does not respond.');
  const outcome = await bringConfig(urls[0] ?? '');
  const routed = await Promise.all(urls.map((url) => untilRouted(url, outcome.version, isDead)));
  if (!routed.every(Boolean)) throw new Error('The Worker cannot read its configuration.');
  return outcome;
}

/** Restarts workerd after a crash on the same folder, with the stored configuration. */
async function startAgain(runtime: WorkerdSettings, signal: AbortSignal): Promise<WorkerdProcess> {
  const workerd = await startRuntime(runtime, signal);
  const kill = (): void => void workerd.kill9();
  signal.addEventListener('abort', kill);
  try {
    await prepare(workerd, () => Promise.resolve(NOT_IMPORTED));
    signal.throwIfAborted();
    return workerd;
  } catch (error) {
    await workerd.kill9();
    throw error;
  } finally {
    signal.removeEventListener('abort', kill);
  }
}

function keep(
  workerd: WorkerdProcess,
  runtime: WorkerdSettings,
  forwarders: readonly Forwarder[],
): Pick<ServeParts, 'kept' | 'forwarders'> {
  if (forwarders.length === 0) {
    const kept = { latest: () => workerd, letGo: () => Promise.resolve(workerd) };
    return { kept, forwarders };
  }
  const kept = keepRunning(workerd, {
    start: (signal) => startAgain(runtime, signal),
    onEnd: () => {
      for (const forwarder of forwarders) forwarder.leadTo(null);
    },
    onServing: ({ ports }) => {
      for (const [index, forwarder] of forwarders.entries()) forwarder.leadTo(ports[index] ?? null);
    },
    onLog: runtime.onLog,
  });
  return { kept, forwarders };
}

async function run(options: ServeOptions, adminToken: string | null): Promise<Serve> {
  const lines: string[] = [];
  let isStopping = false;
  const isWorthReporting = shutdownFilter(() => isStopping);
  const withoutRepeats = repeatFilter();
  const runtime: WorkerdSettings = {
    options,
    adminToken,
    module: options.module ?? (await ensureBuilt()),
    cfHeader: `headgate-cf-${randomBytes(18).toString('hex')}`,
    onLog(printed) {
      const line = isWorthReporting(printed) ? withoutRepeats(printed) : null;
      if (line === null) return;
      if (lines.push(line) > LOG_LINES_MAX) lines.splice(0, LOG_LINES_MAX / 2);
      options.onLog?.(line);
    },
  };
  const workerd = await startRuntime(runtime);
  try {
    const { imported, warnings } = await prepare(workerd, (url) =>
      importConfig(options, url, adminToken),
    );
    // The ports open only now, so that the first client already meets the configuration.
    const forwarders = await listen(runtime, workerd.ports);
    const onStopping = (): void => void (isStopping = true);
    const parts = { ...keep(workerd, runtime, forwarders), onStopping, cfHeader: runtime.cfHeader };
    const known = {
      imported,
      warnings,
      folderToken: null,
      hasGatewayKeys: await hasGatewayKeys(directUrls(workerd)[0] ?? ''),
      logs: () => lines.join('\n'),
    };
    return asServe(options, parts, known);
  } catch (error) {
    await workerd.terminate(NO_DRAIN_TERM_WAIT_MS);
    if (error instanceof ConfigRefused || !(error instanceof Error)) throw error;
    throw new Error([error.message, ...lines.slice(-20)].join('\n'), { cause: error });
  }
}

function asServe(
  { host = '127.0.0.1' }: ServeOptions,
  parts: ServeParts,
  known: Pick<Serve, 'imported' | 'warnings' | 'hasGatewayKeys' | 'folderToken' | 'logs'>,
): Serve {
  const { kept, forwarders } = parts;
  const shown = host.includes(':') ? `[${host}]` : host;
  const outside = forwarders.map(({ port }) => `http://${shown}:${port}`);
  const urls = outside.length === 0 ? directUrls(kept.latest()) : outside;
  return {
    ...known,
    url: urls[0] ?? '',
    urls,
    workerdPid: () => kept.latest().pid,
    inspectorPort: () => kept.latest().inspectorPort,
    stop: (how) => stopParts(parts, how?.drainMs ?? 0),
    async kill9() {
      const workerd = await kept.letGo();
      await workerd?.kill9();
      await Promise.all(forwarders.map((forwarder) => forwarder.close()));
    },
  };
}
