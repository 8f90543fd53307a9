import { steadyClock } from '../runtime/steady-clock.ts';
import type { GatewayKeyConfig } from '../contract/config/config.ts';
import { directoryOf, snapshotStoreOf, type Env } from '../env.ts';
import type { ConfigSnapshot } from '../contract/rpc/directory-rpc.ts';
import { logEvent } from '../runtime/log.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { compileRoutes, type Routes } from '../routing/placement.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { within } from '../runtime/within.ts';
import { noteRead, noteWait } from './config-reads.ts';
import { callsThatNeedKey, keysByHash } from '../routing/key-access.ts';
import { storedSnapshot } from './stored-snapshot.ts';
import { pause, type Background } from '../runtime/background.ts';

/**
 * How long a copy is used. A copy older than `freshMs` is used while a newer one is requested. A copy older than
 * `sureMs` is used only for calls that reach a pool, because the pool detects an outdated version. Changes therefore
 * apply within 5 s.
 */
const AGES = { freshMs: 2_000, sureMs: 4_000, usableMs: 300_000 };

/** Ages of the empty configuration. Until there is a first configuration, every call is allowed. */
const AGES_OF_EMPTY: typeof AGES = { freshMs: 500, sureMs: 1_000, usableMs: 1_000 };

/** Minimum interval between background refreshes, and between refreshes for unknown names. */
const ASK_EVERY_MS = 1_000;

/** Interval at which a request checks whether the directory has answered another request. */
const LOOK_EVERY_MS = 10;

/** Maximum wait of a request for the directory before it continues with the copy. */
const DIRECTORY_TIMEOUT_MS = 1_000;

/** Time for which a new isolate waits for the store before it also queries the directory. */
const STORE_FIRST_MS = 250;

/** Time limit for an answer that no request waits for any more, and that is still used. */
const LATE_MS = 5_000;

/** Pause of a waiting request between two attempts, and interval at which it reads the store. */
const RETRY_PAUSE_MS = 250;
const LOOK_INTO_STORE_MS = 5_000;

/** Time after a failed wait in which only requests that need an answer wait for the directory. */
const IN_VAIN_MS = 4_000;

/** A snapshot with everything that is compiled once per version. */
export interface RoutingTable {
  readonly snapshot: ConfigSnapshot;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly routes: Routes;
  /** Gateway keys by hash, including the hash before a rotation. */
  readonly keys: ReadonlyMap<string, GatewayKeyConfig>;
  /** Whether calls to all, some or no upstreams need a gateway key. */
  readonly needKey: ReturnType<typeof callsThatNeedKey>;
}

/** This isolate's copy of the configuration. It is plain data, because requests must not share promises. */
let table: RoutingTable | null = null;

/** Start of the query whose answer last confirmed that the copy is the newest. */
let confirmedAt = -Infinity;

/** The current query to the directory. null if there is none, or if no request waits for it any more. */
let asking: { readonly at: number } | null = null;

/** Numbers of the last query, of the last answered query, and of the last query whose answer would be too late. */
let questions = 0;
let answered = 0;
let late = 0;

/** Time of the last query to the directory, and of its last failure. */
let lastAskedAt = -Infinity;
let brokenAt = -Infinity;

/** Time of the last wait without an answer. */
let failedAt = -Infinity;

/** Time of the last query for an unknown name. */
let askedAt = -Infinity;

/** A version that was announced to this isolate and not queried yet. */
let announced = 0;

let storeReadAt = -Infinity;

/** Tag of the copy from the store, or null if there was none. undefined once the directory has received it. */
let found: string | null | undefined;

/**
 * Returns the configuration for a call that reaches a pool. The copy may be minutes old, but not older than
 * `minVersion` if the directory can be reached.
 *
 * @returns null if there has never been one
 */
export function routingTable(
  env: Env,
  ctx: Background,
  minVersion = 0,
): Promise<RoutingTable | null> {
  return read(env, ctx, minVersion, 'usableMs');
}

/**
 * Returns the configuration for a request that reaches no pool. It is at most a few seconds old if the directory
 * answers.
 *
 * @returns null if the directory has never answered, because the age of a copy from the store is unknown
 */
export async function sureTable(env: Env, ctx: Background): Promise<RoutingTable | null> {
  const copy = await read(env, ctx, 0, 'sureMs');
  return isConfirmed() ? copy : null;
}

async function read(
  env: Env,
  ctx: Background,
  minVersion: number,
  age: 'sureMs' | 'usableMs',
): Promise<RoutingTable | null> {
  noteRead();
  const wanted = Math.max(minVersion, announced);
  const ageMs = steadyClock.now() - confirmedAt;
  if (table !== null && table.snapshot.version >= wanted && ageMs < agesOf(table)[age]) {
    if (ageMs >= agesOf(table).freshMs) refreshBehind(env, ctx);
    return table;
  }
  noteWait();
  const mayContinue = age === 'usableMs' ? table !== null : isConfirmed();
  await untilThere(env, ctx, () => hasCopy(wanted, age), mayContinue);
  return table;
}

/**
 * Returns a configuration that is not older than a version that a pool reported. An older copy is not enough, however
 * long the directory takes, unless the directory confirms it now: the pool may have its version from a directory that
 * no longer exists.
 *
 * @returns null if there is none before `untilAt`, or if the client has disconnected
 */
export async function tableSince(
  { env, ctx, signal }: { env: Env; ctx: Background; signal: Pick<AbortSignal, 'aborted'> },
  version: number,
  untilAt: number,
): Promise<RoutingTable | null> {
  const before = questions;
  const isThere = (): boolean =>
    table !== null && (table.snapshot.version >= version || answered > before);
  if (isThere()) return table;
  noteWait();
  for (let isFirst = true; ; isFirst = false) {
    const isBroken = steadyClock.now() - brokenAt < RETRY_PAUSE_MS;
    // A thousand requests may wait for minutes. One of them queries, and the others check rarely.
    if (!isBroken && (isFirst || !isAsking())) await untilThere(env, ctx, isThere, false);
    if (!isThere() && steadyClock.now() - storeReadAt > LOOK_INTO_STORE_MS) await begin(env);
    if (isThere()) return table;
    if (signal.aborted || steadyClock.now() >= untilAt) return null;
    await pause(RETRY_PAUSE_MS);
  }
}

/** Returns the newest copy, for responses to calls that used an older one. */
export function newestKnown(): RoutingTable | null {
  return table;
}

/** Whether a configuration may be outdated: a newer copy exists, or the directory has not confirmed it for seconds. */
export function mayBeOld(one: RoutingTable): boolean {
  return one !== table || !hasCopy(0, 'sureMs');
}

/** Announces a version that this isolate created. Its next call uses that version. */
export function hearOf(version: number): void {
  announced = Math.max(announced, version);
  failedAt = -Infinity;
}

/**
 * Returns the configuration for a call with a name that `routingTable` does not have. The directory is queried at most
 * once a second for such calls. Requests that arrive during a query wait for its answer.
 *
 * @returns null if the directory has never answered
 */
export async function newerTable(env: Env, ctx: Background): Promise<RoutingTable | null> {
  const now = steadyClock.now();
  if (now - askedAt >= ASK_EVERY_MS) askedAt = now;
  const since = askedAt;
  await untilThere(env, ctx, () => confirmedAt >= since, isConfirmed());
  return isConfirmed() ? table : null;
}

/**
 * Whether the directory has answered this isolate. Until then, the copy comes from the store and has an unknown age.
 */
function isConfirmed(): boolean {
  return answered > 0;
}

/** Whether the copy has at least that version and is not too old. */
function hasCopy(version: number, age: 'sureMs' | 'usableMs'): boolean {
  if (table === null || table.snapshot.version < version) return false;
  return steadyClock.now() - confirmedAt < agesOf(table)[age];
}

function agesOf({ snapshot }: RoutingTable): typeof AGES {
  return snapshot.version === 0 ? AGES_OF_EMPTY : AGES;
}

function refreshBehind(env: Env, ctx: Background): void {
  const isTime = steadyClock.now() - lastAskedAt >= ASK_EVERY_MS;
  // No request waits for this query, so the earlier one may take until its answer is discarded.
  if (isTime && !isAsking(LATE_MS)) ctx.waitUntil(ask(env));
}

/** Whether a query is running. An older query may be stuck in an instance that no longer exists. */
function isAsking(lostAfterMs = DIRECTORY_TIMEOUT_MS): boolean {
  return asking !== null && steadyClock.now() - asking.at < lostAfterMs;
}

/**
 * Waits until the directory has answered and `isThere` is true, for at most a second. One request queries, and the
 * others check for its answer. After a failed wait, requests that can continue without an answer do not wait.
 */
async function untilThere(
  env: Env,
  ctx: Background,
  isThere: () => boolean,
  mayContinue: boolean,
): Promise<void> {
  const startedAt = steadyClock.now();
  if (mayContinue && startedAt - failedAt < IN_VAIN_MS) return refreshBehind(env, ctx);
  const untilAt = startedAt + DIRECTORY_TIMEOUT_MS;
  while (!isThere() && steadyClock.now() < untilAt) {
    if (isAsking()) {
      await pause(LOOK_EVERY_MS);
      continue;
    }
    asking = { at: steadyClock.now() };
    const isStoreSlow = table === null && !(await hasBegun(env));
    const answering = ask(env);
    // Other requests wait for the answer even if this client disconnects.
    ctx.waitUntil(answering);
    // The loop then checks whether the store or the directory answers first.
    if (isStoreSlow) continue;
    if (isThere()) return;
    await within(untilAt - steadyClock.now(), answering).catch(() => {});
    if (brokenAt < startedAt) break;
    // An object that was reset answers the next query.
    await pause(RETRY_PAUSE_MS);
  }
  if (!isThere()) failedAt = steadyClock.now();
}

/** Whether the store answered in time, also without a copy. */
function hasBegun(env: Env): Promise<boolean> {
  return within(STORE_FIRST_MS, begin(env)).then(
    () => true,
    () => false,
  );
}

/** Starts with the copy in the store. The directory is queried afterwards. */
async function begin(env: Env): Promise<void> {
  if (snapshotStoreOf(env) === null) return;
  storeReadAt = steadyClock.now();
  const before = answered;
  const stored = await storedSnapshot(env);
  found = stored?.tag ?? null;
  // An answer of the directory in the meantime takes precedence.
  if (stored === null || answered > before) return;
  if (!isNewer(stored) || stored.version === table?.snapshot.version) return;
  table = compile(stored);
  late = questions;
  // The directory has not confirmed that it is the newest.
  confirmedAt = steadyClock.now() - AGES.sureMs;
}

/** Queries the directory for a newer version than the copy. */
async function ask(env: Env): Promise<void> {
  const mine = { at: steadyClock.now(), number: (questions += 1) };
  asking = mine;
  lastAskedAt = mine.at;
  const wanted = announced;
  const known = table?.snapshot.tag ?? null;
  try {
    take(await within(LATE_MS, directoryOf(env).snapshot(known, found)), known, mine);
    found = undefined;
    failedAt = -Infinity;
  } catch (error) {
    brokenAt = steadyClock.now();
    logEvent('directory_unreachable', { error: String(error) });
  }
  // If that version was not available either, later calls need not all wait for it.
  if (announced === wanted) announced = 0;
  if (asking === mine) asking = null;
}

/**
 * Applies an answer. null means that the known version is the newest. An older version than the copy also applies,
 * because the copy may come from a directory that no longer exists or was restored. A late answer does not apply.
 */
function take(
  snapshot: ConfigSnapshot | null,
  known: string | null,
  { at, number }: { readonly at: number; readonly number: number },
): void {
  const isPast =
    snapshot === null ? table?.snapshot.tag !== known : number <= late && !isNewer(snapshot);
  if (isPast) return;
  if (snapshot !== null) table = compile(snapshot);
  confirmedAt = Math.max(confirmedAt, at);
  answered = Math.max(answered, number);
  late = Math.max(late, number);
}

/** Whether a snapshot replaces the copy. It may have the same version with other full groups. */
function isNewer({ version, fingerprintKey }: ConfigSnapshot): boolean {
  if (table === null) return true;
  return fingerprintKey === table.snapshot.fingerprintKey && version >= table.snapshot.version;
}

function compile(snapshot: ConfigSnapshot): RoutingTable {
  const { version, config } = snapshot;
  const isOpen = config.leases === 'open';
  if (isOpen && table?.snapshot.config.leases !== 'open') logEvent('leases_open', { version });
  const upstreams = resolveUpstreams(config, BUILT_IN_UPSTREAMS);
  return {
    snapshot,
    upstreams,
    routes: compileRoutes(config, upstreams),
    keys: keysByHash(config.keys),
    needKey: callsThatNeedKey(config, upstreams.values()),
  };
}
