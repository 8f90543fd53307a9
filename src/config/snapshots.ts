// Step 6: the configuration in force, as an isolate keeps it. check-config.ts lists all steps.

import { steadyClock } from '../runtime/steady-clock.ts';
import type { Config, GatewayKeyConfig } from '../contract/config/config.ts';
import { directoryOf, snapshotStoreOf, type Env } from '../env.ts';
import type { ConfigSnapshot } from '../contract/rpc/directory-rpc.ts';
import { logEvent } from '../runtime/log.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { compileRoutes, type Routes } from '../routing/placement.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { within } from '../runtime/within.ts';
import { noteRead, noteWait } from './config-reads.ts';
import { allowsLeases, callsThatNeedKey, keysByHash } from '../routing/key-access.ts';
import { storedSnapshot } from './stored-snapshot.ts';
import { pause, type Background } from '../runtime/background.ts';

/**
 * How long a copy serves. One older than `freshMs` is used while a newer one is asked for. One older than `sureMs` serves
 * only calls that ask a pool, which knows whether there is a newer one: so changes apply within 5 s.
 */
const AGES = { freshMs: 2_000, sureMs: 4_000, usableMs: 300_000 };

/** How long the empty one does: before a first configuration everybody may do everything. */
const AGES_OF_EMPTY: typeof AGES = { freshMs: 500, sureMs: 1_000, usableMs: 1_000 };

/** How often an isolate asks behind its calls, and for the sake of callers of what is not there. */
const ASK_EVERY_MS = 1_000;

/** How often a request looks whether the directory has answered another one. */
const LOOK_EVERY_MS = 10;

/** How long a request waits for the directory before it goes on with what is known. */
const DIRECTORY_TIMEOUT_MS = 1_000;

/** How long an isolate that begins waits for the store before it asks the directory as well. */
const STORE_FIRST_MS = 250;

/** How long an answer may take that nobody waits for any more, and is taken over nevertheless. */
const LATE_MS = 5_000;

/** How long a request that waits pauses between two tries, and how often the store is looked into for it. */
const RETRY_PAUSE_MS = 250;
const LOOK_INTO_STORE_MS = 5_000;

/** How long nobody waits for the directory after somebody did in vain, but who cannot go on without it. */
const IN_VAIN_MS = 4_000;

/** A snapshot with everything that is worked out once per version. */
export interface RoutingTable {
  readonly snapshot: ConfigSnapshot;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly routes: Routes;
  /** Gateway keys by hash, that of before a rotation too. */
  readonly keys: ReadonlyMap<string, GatewayKeyConfig>;
  /** Calls that need a gateway key: those to all upstreams, to some, or to none. */
  readonly needKey: ReturnType<typeof callsThatNeedKey>;
}

/** This isolate's copy of the configuration. Plain data only: requests may not share promises. */
let table: RoutingTable | null = null;

/** When the directory was asked that said that the copy is the newest. */
let confirmedAt = -Infinity;

/** The question to the directory that is under way; null: none, or one that nobody waits for any more. */
let asking: { readonly at: number } | null = null;

/** Number of questions so far, of the last one that was answered, and of the last one whose answer would come late. */
let questions = 0;
let answered = 0;
let late = 0;

/** When the directory was last asked, and when that last failed. */
let lastAskedAt = -Infinity;
let brokenAt = -Infinity;

/** When a request waited in vain. */
let failedAt = -Infinity;

/** When the directory was last asked for the sake of something that is not there. */
let askedAt = -Infinity;

/** A version that this isolate has heard of, and not asked for yet. */
let heardOf = 0;

/** When the copy for isolates that begin was last looked for. */
let storeReadAt = -Infinity;

/** Tag of the copy that this isolate has begun with, null if there was none, until the directory was told. */
let found: string | null | undefined;

/**
 * Returns the configuration for a call that asks a pool: a copy that may be minutes old, and not older than
 * `minVersion` if the directory can be reached.
 *
 * @returns null when there never was one
 */
export function routingTable(
  env: Env,
  ctx: Background,
  minVersion = 0,
): Promise<RoutingTable | null> {
  return read(env, ctx, minVersion, 'usableMs');
}

/**
 * Returns the configuration for what no pool is asked about: a few seconds old at the most, if the directory answers.
 *
 * @returns null when it has never answered: nobody says how old a copy from the store is
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
  const wanted = Math.max(minVersion, heardOf);
  const ageMs = steadyClock.now() - confirmedAt;
  if (table !== null && table.snapshot.version >= wanted && ageMs < agesOf(table)[age]) {
    if (ageMs >= agesOf(table).freshMs) refreshBehind(env, ctx);
    return table;
  }
  noteWait();
  const mayGoOn = age === 'usableMs' ? table !== null : isConfirmed();
  await untilThere(env, ctx, () => hasCopy(wanted, age), mayGoOn);
  return table;
}

/**
 * Returns a configuration that is not older than a version which a pool has told of. The copy will not do, however
 * long the directory takes, unless that says so when it is asked now: the pool may know of a directory that is no more.
 *
 * @returns null when none was to be had until then, or the caller has gone
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
    // A thousand may wait for minutes: then one asks, and the others look seldom.
    if (!isBroken && (isFirst || !isAsking())) await untilThere(env, ctx, isThere, false);
    if (!isThere() && steadyClock.now() - storeReadAt > LOOK_INTO_STORE_MS) await begin(env);
    if (isThere()) return table;
    if (signal.aborted || steadyClock.now() >= untilAt) return null;
    await pause(RETRY_PAUSE_MS);
  }
}

/** The copy that is the newest here by now, for answers to calls that have gone by an older one. */
export function newestKnown(): RoutingTable | null {
  return table;
}

/** Tells whether a configuration may not be the one in force: a newer one is here, or nobody has asked for seconds. */
export function mayBeOld(one: RoutingTable): boolean {
  return one !== table || !hasCopy(0, 'sureMs');
}

/** Tells that this isolate has made a version: its next call is routed by that one. */
export function hearOf(version: number): void {
  heardOf = Math.max(heardOf, version);
  failedAt = -Infinity;
}

/**
 * Returns the configuration for a call of something that `routingTable` does not have. The directory is asked at
 * most once a second, whatever is called; who comes while it is asked waits for that answer.
 *
 * @returns null when it has never answered
 */
export async function newerTable(env: Env, ctx: Background): Promise<RoutingTable | null> {
  const now = steadyClock.now();
  if (now - askedAt >= ASK_EVERY_MS) askedAt = now;
  const since = askedAt;
  await untilThere(env, ctx, () => confirmedAt >= since, isConfirmed());
  return isConfirmed() ? table : null;
}

/** Tells whether the directory has answered this isolate: until then the copy is the store's, of whatever age. */
function isConfirmed(): boolean {
  return answered > 0;
}

/** Tells whether the copy is of that version at least, and not too old. */
function hasCopy(version: number, age: 'sureMs' | 'usableMs'): boolean {
  if (table === null || table.snapshot.version < version) return false;
  return steadyClock.now() - confirmedAt < agesOf(table)[age];
}

function agesOf({ snapshot }: RoutingTable): typeof AGES {
  return snapshot.version === 0 ? AGES_OF_EMPTY : AGES;
}

function refreshBehind(env: Env, ctx: Background): void {
  const isTime = steadyClock.now() - lastAskedAt >= ASK_EVERY_MS;
  // Nobody waits for it, so that the one before may take as long as it counts.
  if (isTime && !isAsking(LATE_MS)) ctx.waitUntil(ask(env));
}

/** One that was asked long ago may be parked in an instance that is no more. */
function isAsking(lostAfterMs = DIRECTORY_TIMEOUT_MS): boolean {
  return asking !== null && steadyClock.now() - asking.at < lostAfterMs;
}

/**
 * Waits until the directory has answered so that it is there, a second at the most. One request asks, the others look
 * whether it has; and where somebody has just waited in vain, nobody else does who may go on without.
 */
async function untilThere(
  env: Env,
  ctx: Background,
  isThere: () => boolean,
  mayGoOn: boolean,
): Promise<void> {
  const startedAt = steadyClock.now();
  if (mayGoOn && startedAt - failedAt < IN_VAIN_MS) return refreshBehind(env, ctx);
  const untilAt = startedAt + DIRECTORY_TIMEOUT_MS;
  while (!isThere() && steadyClock.now() < untilAt) {
    if (isAsking()) {
      await pause(LOOK_EVERY_MS);
      continue;
    }
    asking = { at: steadyClock.now() };
    const isStoreSlow = table === null && !(await hasBegun(env));
    const answering = ask(env);
    // The others wait for it even if this caller leaves.
    ctx.waitUntil(answering);
    // It looks which of both is the first.
    if (isStoreSlow) continue;
    if (isThere()) return;
    await within(untilAt - steadyClock.now(), answering).catch(() => {});
    if (brokenAt < startedAt) break;
    // An object that was reset answers the next one.
    await pause(RETRY_PAUSE_MS);
  }
  if (!isThere()) failedAt = steadyClock.now();
}

/** Tells whether the store has answered soon, be it that it has no copy. */
function hasBegun(env: Env): Promise<boolean> {
  return within(STORE_FIRST_MS, begin(env)).then(
    () => true,
    () => false,
  );
}

/** Begins with the copy that was made for isolates without one: the directory is asked behind it. */
async function begin(env: Env): Promise<void> {
  if (snapshotStoreOf(env) === null) return;
  storeReadAt = steadyClock.now();
  const before = answered;
  const stored = await storedSnapshot(env);
  found = stored?.tag ?? null;
  // What the directory has said meanwhile counts.
  if (stored === null || answered > before) return;
  if (!isNewer(stored) || stored.version === table?.snapshot.version) return;
  table = compile(stored);
  late = questions;
  // Nobody has said that it is the newest.
  confirmedAt = steadyClock.now() - AGES.sureMs;
}

/** Asks the directory for what is newer than the copy. */
async function ask(env: Env): Promise<void> {
  const mine = { at: steadyClock.now(), number: (questions += 1) };
  asking = mine;
  lastAskedAt = mine.at;
  const askedFor = heardOf;
  const known = table?.snapshot.tag ?? null;
  try {
    take(await within(LATE_MS, directoryOf(env).snapshot(known, found)), known, mine);
    found = undefined;
    failedAt = -Infinity;
  } catch (error) {
    brokenAt = steadyClock.now();
    logEvent('directory_unreachable', { error: String(error) });
  }
  // Where that was not to be had either, the next calls need not all wait for it.
  if (heardOf === askedFor) heardOf = 0;
  if (asking === mine) asking = null;
}

/**
 * Takes an answer over; null: the one that is known is the newest. What the directory says counts, also if it is older
 * than the copy, which may be of a directory that is no more, or was restored; but not if it comes late.
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

/** Tells whether a snapshot is to take the place of the copy, or has the same version with other groups full. */
function isNewer({ version, fingerprintKey }: ConfigSnapshot): boolean {
  if (table === null) return true;
  return fingerprintKey === table.snapshot.fingerprintKey && version >= table.snapshot.version;
}

/** A configuration from before leases required a right. */
type OlderConfig = Omit<Config, 'leases'> & Partial<Pick<Config, 'leases'>>;

/** Logs that every caller may take leases, or that none may since the upgrade. */
function logLeases({ version, config }: ConfigSnapshot): void {
  const { leases, keys, groups } = config as OlderConfig;
  if (leases === 'open') logEvent('leases_open', { version });
  const isOlder = leases === undefined && keys.length + groups.length > 0;
  if (isOlder && !keys.some(allowsLeases)) logEvent('leases_closed', { version });
}

function compile(snapshot: ConfigSnapshot): RoutingTable {
  const { config } = snapshot;
  if (table === null || table.snapshot.config.leases !== config.leases) logLeases(snapshot);
  const upstreams = resolveUpstreams(config, BUILT_IN_UPSTREAMS);
  return {
    snapshot,
    upstreams,
    routes: compileRoutes(config, upstreams),
    keys: keysByHash(config.keys),
    needKey: callsThatNeedKey(config, upstreams.values()),
  };
}
