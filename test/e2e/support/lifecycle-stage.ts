import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Serve, ServeOptions } from '../../../scripts/serve/start-serve.ts';
import { startServe } from '../../../scripts/serve/start-serve.ts';
import type { StrictOptions, StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import type { Admin } from './lifecycle-admin.ts';
import { createAdmin } from './lifecycle-admin.ts';

/** Opens the admin routes of the Headgates that these tests start. */
export const STAGE_TOKEN = 'stage-admin-token';

/** Holds that give a slot back at once, so that a test measures nothing but the way there. */
export const NO_HOLDS = { release_cooldown_ms: 0, cancel_cooldown_ms: 0, failure_hold_ms: 0 };

export interface LifecycleStageOptions {
  readonly upstream?: StrictOptions;
  /** The configuration of the first start. */
  readonly config: (upstream: StrictUpstream) => unknown;
  /** @default 1 */
  readonly workers?: number;
  /** @default no variable at all */
  readonly env?: NodeJS.ProcessEnv;
  /** Opens workerd's inspector. @default false */
  readonly inspector?: boolean;
  /** Puts the forwarder before workerd. @default true */
  readonly forwarder?: boolean;
  /** Additional served hosts. @default none */
  readonly allowHosts?: readonly string[];
  /** How many MiB bodies may hold. @default that of `serve` */
  readonly bodyMemoryMib?: number;
  /** Makes another module than the project's in the folder that it is given. */
  readonly module?: (folder: string) => Promise<string>;
}

/** A Headgate behind its forwarder, on a data folder of its own, before a strict upstream. */
export interface LifecycleStage {
  readonly upstream: StrictUpstream;
  readonly admin: Admin;
  readonly dataDir: string;
  /** Headgate's base URL, without a trailing slash; a restart changes it. */
  readonly url: () => string;
  readonly urls: () => readonly string[];
  readonly workerdPid: () => number;
  readonly inspectorPort: () => number | null;
  /** Output of workerd, over all restarts. */
  readonly logs: () => string;
  /** As a power cut would end it. */
  kill9(): Promise<void>;
  /** Starts a Headgate that ended on the same folder. */
  start(): Promise<void>;
  /** Ends Headgate in good order, and leaves the upstream and the folder. `drainMs`: as at SIGTERM. */
  stop(drainMs?: number): Promise<void>;
  close(): Promise<void>;
}

/** One upstream `practice`, one group `practice` with a limit and no cool-downs. */
export function practiceConfig(
  limit: number,
  group: Readonly<Record<string, unknown>> = {},
): (upstream: StrictUpstream) => unknown {
  return ({ url }) => ({
    upstreams: [{ id: 'practice', base_url: url, dialect: 'openai' }],
    groups: [
      {
        name: 'practice',
        match: { upstreams: ['practice'] },
        limits: { max_concurrency: limit },
        holds: NO_HOLDS,
        ...group,
      },
    ],
  });
}

/** Starts a stage; `close` removes all of it. */
export async function startStage(options: LifecycleStageOptions): Promise<LifecycleStage> {
  const dataDir = await mkdtemp(join(tmpdir(), 'headgate-lifecycle-'));
  const upstream = await startStrictUpstream(options.upstream ?? {});
  const lines: string[] = [];
  const module = await options.module?.(dataDir);
  const serveOptions: ServeOptions = {
    port: 0,
    dataDir,
    adminToken: STAGE_TOKEN,
    env: options.env ?? {},
    config: options.config(upstream),
    workers: options.workers ?? 1,
    inspector: options.inspector ?? false,
    ...(options.forwarder !== undefined && { forwarder: options.forwarder }),
    ...(options.allowHosts !== undefined && { allowHosts: options.allowHosts }),
    ...(module !== undefined && { module }),
    ...(options.bodyMemoryMib !== undefined && { bodyMemoryMib: options.bodyMemoryMib }),
    onLog: (line) => lines.push(line),
  };
  let serve: Serve = await startServe(serveOptions);
  let runs = true;
  const end = async (how: () => Promise<void>): Promise<void> => {
    if (!runs) return;
    runs = false;
    await how();
  };
  return {
    upstream,
    dataDir,
    admin: createAdmin(() => serve.url, STAGE_TOKEN),
    url: () => serve.url,
    urls: () => serve.urls,
    workerdPid: () => serve.workerdPid(),
    inspectorPort: () => serve.inspectorPort(),
    logs: () => lines.join('\n'),
    kill9: () => end(() => serve.kill9()),
    async start() {
      serve = await startServe(serveOptions);
      runs = true;
    },
    stop: (drainMs) => end(() => serve.stop(drainMs === undefined ? {} : { drainMs })),
    async close() {
      await end(() => serve.kill9());
      await upstream.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
