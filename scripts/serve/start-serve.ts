import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { callsInFlight, importFirst, untilReady } from './admin-client.ts';
import { BUILT_DASHBOARD, ensureBuilt } from './build.ts';
import type { Forwarder } from './forwarder.ts';
import { startForwarder } from './forwarder.ts';
import { readCompatibility, workerdConfig } from './workerd-config.ts';
import type { WorkerdProcess } from './workerd.ts';
import { startWorkerd } from './workerd.ts';

/** Keys of providers, secrets of webhooks, and who may see metrics and the admin routes. */
const PASSED_ON = /^((UPSTREAM|WEBHOOK)_[A-Z0-9_]+|METRICS_TOKEN|ACCESS_(TEAM_DOMAIN|AUD|ROLE))$/;

export interface ServeOptions {
  /** Port of the first Worker service; 0: any free one. */
  readonly port: number;
  /** @default 127.0.0.1 */
  readonly host?: string;
  /** Where everything is kept. Made if it is missing. */
  readonly dataDir: string;
  /** Environment of workerd: what `PASSED_ON` names becomes bindings. @default that of this process */
  readonly env?: NodeJS.ProcessEnv;
  /** False: clients speak to workerd itself, which does not notice all that leave. @default true */
  readonly forwarder?: boolean;
  /** @default random */
  readonly bootId?: string;
  /** Opens the admin routes. @default ADMIN_TOKEN of the environment; without it they are closed */
  readonly adminToken?: string;
  /** JSON or YAML, imported if no configuration was ever written. */
  readonly configFile?: string;
  /** The same, as a value. */
  readonly config?: unknown;
  /** Worker services bound to the one set of objects, each with its own URL. @default 1 */
  readonly workers?: number;
  /** Path of another built module than the project's. */
  readonly module?: string;
  /** Takes every line that workerd prints; `logs` keeps them besides. */
  readonly onLog?: (line: string) => void;
}

/** A Headgate on plain workerd. */
export interface Serve {
  /** Base URL, without a trailing slash. */
  readonly url: string;
  /** One per Worker service. */
  readonly urls: readonly string[];
  readonly workerdPid: number;
  /** Whether the configuration that was given has been imported; false: there was one. */
  readonly imported: boolean;
  /** Resolves with a sentence when workerd has ended, for whatever reason. */
  readonly ended: Promise<string>;
  /** What workerd printed, the last lines of it. */
  logs(): string;
  /** Takes no more connections, waits for the calls in flight at most so long, ends workerd. */
  stop(options?: { readonly drainMs?: number }): Promise<void>;
  /** Kills workerd as a power cut would, and closes the port. */
  kill9(): Promise<void>;
}

const LOG_LINES_MAX = 20_000;
const DRAIN_POLL_MS = 25;

/** How long workerd may take to end by itself once it was asked to. */
const TERM_WAIT_MS = 2_000;
const NO_DRAIN_TERM_WAIT_MS = 500;

/** Time for bytes that workerd has written to reach the client. */
const FLUSH_MS = 50;

interface Parts {
  readonly workerd: WorkerdProcess;
  /** None where clients speak to workerd itself. */
  readonly forwarders: readonly Forwarder[];
}

/** Waits until no call is in flight. */
async function drain({ workerd }: Parts, drainMs: number): Promise<void> {
  const deadline = Date.now() + drainMs;
  let hasEnded = false;
  const ended = workerd.ended.then(() => {
    hasEnded = true;
  });
  while (Date.now() < deadline && !hasEnded) {
    const urls = workerd.ports.map((port) => `http://127.0.0.1:${port}`);
    const counts = await Promise.all(urls.map(callsInFlight));
    // One that is too busy to answer has calls in flight.
    if (counts.every((count) => count === 0)) return;
    await Promise.race([delay(DRAIN_POLL_MS), ended]);
  }
}

async function stopParts(parts: Parts, drainMs: number): Promise<void> {
  const { workerd, forwarders } = parts;
  for (const forwarder of forwarders) forwarder.stopAccepting();
  if (drainMs > 0) {
    await drain(parts, drainMs);
    await delay(FLUSH_MS);
    // workerd closes what is idle in good order, and the forwarders pass that on.
    await workerd.terminate(TERM_WAIT_MS);
  }
  await Promise.all(forwarders.map((forwarder) => forwarder.close()));
  await workerd.terminate(NO_DRAIN_TERM_WAIT_MS);
}

async function startParts(
  options: ServeOptions,
  adminToken: string | null,
  onLog: (line: string) => void,
): Promise<Parts> {
  const dataDir = resolve(options.dataDir);
  const module = options.module ?? (await ensureBuilt());
  const environment = options.env ?? process.env;
  const env: NodeJS.ProcessEnv = { ...environment, ADMIN_TOKEN: adminToken ?? undefined };
  const workers = options.workers ?? 1;
  await mkdir(dataDir, { recursive: true });
  const config = workerdConfig({
    module: relative(dataDir, module),
    objectsDir: resolve(dataDir, 'objects'),
    workers,
    // workerd does not start where a folder that it serves is missing.
    dashboardDir: existsSync(BUILT_DASHBOARD) ? BUILT_DASHBOARD : null,
    bootId: options.bootId ?? randomBytes(9).toString('base64url'),
    fromEnvironment: Object.keys(env).filter((name) =>
      name === 'ADMIN_TOKEN' ? adminToken !== null : PASSED_ON.test(name),
    ),
    compatibility: await readCompatibility(),
  });
  const workerd = await startWorkerd({ dataDir, config, workers, env, onLog });
  if (options.forwarder === false) return { workerd, forwarders: [] };
  const { host = '127.0.0.1', port } = options;
  const forwarders: Forwarder[] = [];
  try {
    for (const [index, targetPort] of workerd.ports.entries()) {
      const wanted = index === 0 ? port : 0;
      forwarders.push(await startForwarder({ host, port: wanted, targetPort }));
    }
  } catch (error) {
    await stopParts({ workerd, forwarders }, 0);
    throw error;
  }
  return { workerd, forwarders };
}

async function importConfig(
  options: ServeOptions,
  url: string,
  adminToken: string,
): Promise<boolean> {
  const { config, configFile } = options;
  const target = { url, adminToken };
  if (config !== undefined) {
    return importFirst(target, JSON.stringify(config), 'application/json');
  }
  if (configFile === undefined) return false;
  const text = await readFile(configFile, 'utf8');
  const isJson = configFile.endsWith('.json');
  return importFirst(target, text, isJson ? 'application/json' : 'application/yaml');
}

/** Starts Headgate on plain workerd; resolves when it answers. */
export async function startServe(options: ServeOptions): Promise<Serve> {
  const given = options.adminToken ?? (options.env ?? process.env)['ADMIN_TOKEN'];
  if (given) return run(options, given);
  const { config, configFile, ...rest } = options;
  const imports = config !== undefined || configFile !== undefined;
  const imported = imports && (await importAlone(options));
  return { ...(await run(rest, null)), imported };
}

/**
 * Imports in a short run of its own, with a token that nobody learns: without one the admin routes are
 * closed to us too, and the Worker is to know that they are.
 */
async function importAlone(options: ServeOptions): Promise<boolean> {
  const { host: _host, ...rest } = options;
  const alone = { ...rest, port: 0, forwarder: false, workers: 1 };
  const serve = await run(alone, randomBytes(24).toString('base64url'));
  await serve.stop();
  return serve.imported;
}

async function run(options: ServeOptions, adminToken: string | null): Promise<Serve> {
  const lines: string[] = [];
  const parts = await startParts(options, adminToken, (line) => {
    if (lines.push(line) > LOG_LINES_MAX) lines.splice(0, LOG_LINES_MAX / 2);
    options.onLog?.(line);
  });
  const { workerd, forwarders } = parts;
  const direct = workerd.ports.map((port) => `http://127.0.0.1:${port}`);
  const host = options.host ?? '127.0.0.1';
  const shown = host.includes(':') ? `[${host}]` : host;
  const urls =
    forwarders.length === 0 ? direct : forwarders.map(({ port }) => `http://${shown}:${port}`);
  let dead = false;
  const ended = workerd.ended.then((sentence) => {
    dead = true;
    return sentence;
  });
  try {
    const ready = await Promise.all(direct.map((url) => untilReady(url, () => dead)));
    if (!ready.every(Boolean)) {
      throw new Error(`The Worker does not answer.\n${lines.slice(-20).join('\n')}`);
    }
    return {
      url: urls[0] ?? '',
      urls,
      workerdPid: workerd.pid,
      imported: adminToken !== null && (await importConfig(options, direct[0] ?? '', adminToken)),
      ended,
      logs: () => lines.join('\n'),
      stop: (how) => stopParts(parts, how?.drainMs ?? 0),
      async kill9() {
        await workerd.kill9();
        await Promise.all(forwarders.map((forwarder) => forwarder.close()));
      },
    };
  } catch (error) {
    await stopParts(parts, 0);
    throw error;
  }
}
