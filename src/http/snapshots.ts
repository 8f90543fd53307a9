import type { GatewayKeyConfig } from '../contract/config.ts';
import { directoryOf, type Env } from '../contract/env.ts';
import type { Snapshot } from '../contract/directory-rpc.ts';
import { logEvent } from '../contract/log.ts';
import type { Upstream } from '../contract/upstream.ts';
import { compileRoutes, type Routes } from '../routing/placement.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../upstream/catalog.ts';
import { within } from '../upstream/within.ts';
import { keysByHash } from './key-access.ts';
import type { Background } from './waiting.ts';

/** A snapshot younger than this is used as it is. */
const FRESH_MS = 2_000;

/** One younger than this is used while a newer one is fetched; together: changes apply within 5 s. */
const USABLE_MS = 4_000;

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

/**
 * The configuration to route by, not older than `minVersion` if the directory can be reached.
 *
 * @returns null when the directory was never reached
 */
export async function routingTable(
  env: Env,
  ctx: Background,
  minVersion = 0,
): Promise<RoutingTable | null> {
  const now = Date.now();
  const age = now - checkedAt;
  if (table !== null && table.snapshot.version >= minVersion && age < USABLE_MS) {
    if (age >= FRESH_MS) {
      checkedAt = now - FRESH_MS + DIRECTORY_TIMEOUT_MS; // one request fetches, the others go on
      ctx.waitUntil(refresh(env));
    }
    return table;
  }
  await refresh(env);
  return table;
}

async function refresh(env: Env): Promise<void> {
  try {
    const known = table?.snapshot.tag ?? null;
    const snapshot = await within(DIRECTORY_TIMEOUT_MS, directoryOf(env).snapshot(known));
    if (snapshot !== null && snapshot.version >= (table?.snapshot.version ?? 0)) {
      table = compile(snapshot);
    }
  } catch (error) {
    logEvent('directory_unreachable', { error: String(error) });
  }
  checkedAt = Date.now();
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
