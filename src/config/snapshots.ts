// Step 6: the configuration in force, as an isolate keeps it. check-config.ts lists all steps.

import { steadyClock } from '../runtime/steady-clock.ts';
import type { GatewayKeyConfig } from '../contract/config/config.ts';
import { directoryOf, type Env } from '../env.ts';
import type { Snapshot } from '../contract/rpc/directory-rpc.ts';
import { logEvent } from '../runtime/log.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { compileRoutes, type Routes } from '../routing/placement.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { within } from '../runtime/within.ts';
import { noteRead, noteWait } from './config-reads.ts';
import { keysByHash } from '../routing/key-access.ts';
import { pause, type Background } from '../runtime/background.ts';

/**
 * How long a snapshot serves. One younger than `freshMs` is used as it is; one younger than `usableMs` is used
 * while a newer one is fetched. Together: changes apply within 5 s.
 */
const AGES = { freshMs: 2_000, usableMs: 4_000 };

/** How long the empty one does: before a first configuration everybody may do everything. */
const AGES_OF_EMPTY = { freshMs: 500, usableMs: 1_000 };

/** How often callers of what is not there may make an isolate ask for something newer. */
const ASK_EVERY_MS = 1_000;

/** How often a call looks whether the directory has answered another one. */
const LOOK_EVERY_MS = 10;

/** How long a request waits for the directory before it goes on with what is known. */
const DIRECTORY_TIMEOUT_MS = 1_000;

/** A snapshot with everything that is worked out once per version. */
export interface RoutingTable {
  readonly snapshot: Snapshot;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly routes: Routes;
  /** Gateway keys by hash, that of before a rotation too. */
  readonly keys: ReadonlyMap<string, GatewayKeyConfig>;
}

/** This isolate's copy of the configuration. Plain data only: requests may not share promises. */
let table: RoutingTable | null = null;
let checkedAt = -Infinity;

/** When the directory was last asked for the sake of something that is not there. */
let askedAt = -Infinity;

/** A version that this isolate has heard of, and not asked for yet. */
let heardOf = 0;

/**
 * Returns the configuration to route by, not older than `minVersion` if the directory can be reached.
 *
 * @returns null when the directory was never reached
 */
export async function routingTable(
  env: Env,
  ctx: Background,
  minVersion = 0,
): Promise<RoutingTable | null> {
  noteRead();
  const now = steadyClock.now();
  const age = now - checkedAt;
  const { freshMs, usableMs } = table?.snapshot.version === 0 ? AGES_OF_EMPTY : AGES;
  const isNew = table !== null && table.snapshot.version >= Math.max(minVersion, heardOf);
  if (isNew && age < usableMs) {
    if (age >= freshMs) {
      checkedAt = now - freshMs + DIRECTORY_TIMEOUT_MS; // one request fetches, the others go on
      ctx.waitUntil(refresh(env));
    }
    return table;
  }
  noteWait();
  await refresh(env);
  return table;
}

/** Tells that this isolate has made a version: its next call is routed by that one. */
export function hearOf(version: number): void {
  heardOf = Math.max(heardOf, version);
}

/**
 * Returns the configuration for a call of something that `routingTable` does not have. The directory is asked at
 * most once a second, whatever is called; who comes while it is asked waits for that answer.
 */
export async function newerTable(env: Env, ctx: Background): Promise<RoutingTable | null> {
  const now = steadyClock.now();
  if (now - askedAt >= ASK_EVERY_MS) {
    askedAt = now;
    const asked = refresh(env);
    // The others wait for it even if this caller leaves.
    ctx.waitUntil(asked);
    await asked;
  }
  const deadline = askedAt + DIRECTORY_TIMEOUT_MS;
  while (checkedAt < askedAt && steadyClock.now() < deadline) await pause(LOOK_EVERY_MS);
  return table;
}

async function refresh(env: Env): Promise<void> {
  const askedFor = heardOf;
  try {
    const known = table?.snapshot.tag ?? null;
    const snapshot = await within(DIRECTORY_TIMEOUT_MS, directoryOf(env).snapshot(known));
    if (snapshot !== null && snapshot.version >= (table?.snapshot.version ?? 0)) {
      table = compile(snapshot);
    }
  } catch (error) {
    logEvent('directory_unreachable', { error: String(error) });
  }
  // Where that was not to be had either, the next calls need not all wait for it.
  if (heardOf === askedFor) heardOf = 0;
  checkedAt = steadyClock.now();
}

function compile(snapshot: Snapshot): RoutingTable {
  const { config } = snapshot;
  const upstreams = resolveUpstreams(config, BUILT_IN_UPSTREAMS);
  return {
    snapshot,
    upstreams,
    routes: compileRoutes(config, upstreams),
    keys: keysByHash(config.keys),
  };
}
