import { isTaken } from '../../core/words/outcome.ts';
import { BoundedSet } from '../../core/parts/bounded-map.ts';
import { LEASE_TTL_MS } from '../../core/words/settings.ts';
import { steadyClock, within, pause } from '../../runtime/async.ts';
import { verificationsOf, type Env } from '../../env.ts';
import { FailedAttempts, addressOf } from '../../runtime/origin.ts';
import { poolOf } from '../../routing/pool.ts';
import { isOfProviderKey } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';
import { rejected, type Rejected } from '../results/result.ts';

/** Rejected keys per address and minute without a delay, because keys are mistyped and revoked. */
const UNDELAYED_MAX = 10;

/** Minimum delay of an unverified key. It doubles each time, up to the maximum. */
const DELAY_MS_MIN = 100;
const DELAY_MS_MAX = 1_000;

/** Maximum time in which a pool must report whether its key is verified. */
const ANSWER_MS_MAX = 1_000;

/** Maximum keys that this isolate remembers as verified. For others it asks again. */
const VERIFIED_MAX = 10_000;

/**
 * Maximum unverified keys with calls in flight. The limit is lower for addresses that are being delayed, so that there
 * is room for others.
 */
const UNDER_WAY_MAX = 1_000;
const UNDER_WAY_WAITING_MAX = 500;

/** The same for leases, which keep their place until they expire. The other half is always left to calls. */
const LEASED_MAX = 500;

/** Maximum keys that received a request to retry. Made-up keys do not return, so real ones have room. */
const RETRYING_MAX = 10_000;
const RETRY_AFTER_MS = 1_000;

/**
 * Maximum concurrently delayed calls with wrong gateway keys. Nothing depends on the delay, so further ones are
 * rejected immediately.
 */
const UNKNOWN_WAITING_MAX = 500;

const refused = new FailedAttempts();
const verifiedKeys = new BoundedSet<string>(VERIFIED_MAX);
const retrying = new BoundedSet<string>(RETRYING_MAX);

interface NewKeyCalls {
  calls: number;
  /** When its leases expire unless they are renewed. 0 if it holds none. */
  leasedUntil: number;
}

const underWay = new Map<string, NewKeyCalls>();
let unknownWaiting = 0;

export interface NewKeySeat {
  readonly kind: 'taken';
  /** Must be called when the call has its answer. */
  readonly leave: () => void;
}

interface NewKeyRequest {
  readonly request: Request;
  readonly env: Env;
}

/**
 * Takes a place for a call with the caller's own key. A verified key needs none. This precedes all other work on the
 * call, so that a rejection costs little.
 */
export function takePlace(call: NewKeyRequest, key: string): NewKeySeat | Rejected {
  return takeOneOf(key, () => placesFor(call, key));
}

/** The same for a lease. Its place is freed when its request ends, unless `keepPlace` is called. */
export function takeLeasePlace(call: NewKeyRequest, key: string): NewKeySeat | Rejected {
  return takeOneOf(key, () => Math.min(LEASED_MAX, placesFor(call, key)));
}

/** Keeps the place of an unverified key until its lease expires, or longer if another of its leases does. */
export function keepPlace(key: string, expiresAt: number): void {
  if (verifiedKeys.has(key)) return;
  // The clock of the pool may be ahead of this one.
  const untilAt = Math.min(expiresAt, steadyClock.now() + LEASE_TTL_MS);
  const { calls = 0, leasedUntil = 0 } = underWay.get(key) ?? {};
  underWay.set(key, { calls, leasedUntil: Math.max(leasedUntil, untilAt) });
}

function takeOneOf(key: string, places: () => number): NewKeySeat | Rejected {
  if (verifiedKeys.has(key)) return NO_PLACE;
  const known = underWay.get(key);
  if (known === undefined && underWay.size >= places() && !hasRoomFor(places())) {
    return rejectForNow(key);
  }
  underWay.set(key, { calls: (known?.calls ?? 0) + 1, leasedUntil: known?.leasedUntil ?? 0 });
  const leave = (): void => {
    const held = underWay.get(key);
    if (held === undefined) return;
    held.calls -= 1;
    if (hasEnded(held)) underWay.delete(key);
  };
  return { kind: 'taken', leave };
}

/** Whether there is room after the places of expired leases are freed. */
function hasRoomFor(places: number): boolean {
  for (const [key, held] of underWay) if (hasEnded(held)) underWay.delete(key);
  return underWay.size < places;
}

function hasEnded({ calls, leasedUntil }: NewKeyCalls): boolean {
  return calls === 0 && steadyClock.now() >= leasedUntil;
}

/**
 * Delays a call with an unverified key if its address has sent rejected keys. A verified key is served immediately,
 * even from such an address.
 */
export async function delayNewKey(
  call: NewKeyRequest,
  key: string,
  placements: readonly Placement[],
): Promise<void> {
  const delayMs = delayFor(recentlyRefused(call));
  if (delayMs === 0 || verifiedKeys.has(key)) return;
  if (await isVerified(call.env, placements)) verifiedKeys.add(key);
  else await pauseFor(call.request, delayMs);
}

/** Notes the upstream's answer to a key, under all its names. Lists of models are public and prove nothing. */
export function noteKeyAnswer(
  call: NewKeyRequest,
  keys: readonly string[],
  status: number,
  isGenerating: boolean,
): void {
  if (isTaken(status) && isGenerating) {
    for (const key of keys) verifiedKeys.add(key);
  } else if ((status === 401 || status === 403) && !keys.some((key) => verifiedKeys.has(key))) {
    countRefused(call);
  }
}

export async function delayUnknownKey(call: NewKeyRequest): Promise<void> {
  const delayMs = delayFor(countRefused(call));
  if (delayMs === 0 || unknownWaiting >= UNKNOWN_WAITING_MAX) return;
  unknownWaiting += 1;
  await pauseFor(call.request, delayMs);
  unknownWaiting -= 1;
}

/** The upstream-independent name of a caller's own key, if it has one. */
export function namesAnywhere({
  fingerprint,
}: {
  readonly fingerprint: string | null;
}): readonly string[] {
  return fingerprint === null ? [] : [`* ${fingerprint}`];
}

/** Whether one of these names belongs to a key that is verified, or has a call or lease in progress here. */
export function isFamiliar(names: readonly string[]): boolean {
  return names.some((name) => verifiedKeys.has(name) || underWay.has(name));
}

function placesFor(call: NewKeyRequest, key: string): number {
  const isOfWaiting = delayFor(recentlyRefused(call)) > 0 && !retrying.has(key);
  return isOfWaiting ? UNDER_WAY_WAITING_MAX : UNDER_WAY_MAX;
}

function rejectForNow(key: string): Rejected {
  retrying.add(key);
  const message =
    'Too many calls with unverified provider keys are in progress. Try again in a moment.';
  return rejected({ reason: 'busy', message, retryAfterMs: RETRY_AFTER_MS });
}

export const NO_PLACE: NewKeySeat = { kind: 'taken', leave() {} };

function recentlyRefused(call: NewKeyRequest): number {
  return refused.recent(addressFor(call), steadyClock.now());
}

function countRefused(call: NewKeyRequest): number {
  return refused.count(addressFor(call), steadyClock.now());
}

function addressFor({ request, env }: NewKeyRequest): string {
  return addressOf(env, request);
}

function delayFor(failures: number): number {
  if (failures <= UNDELAYED_MAX) return 0;
  return Math.min(DELAY_MS_MAX, DELAY_MS_MIN * 2 ** (failures - UNDELAYED_MAX - 1));
}

async function pauseFor({ signal }: Request, ms: number): Promise<void> {
  const { promise: left, resolve } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => resolve(), { once: true });
  await Promise.race([pause(ms), left]);
}

/** Asks whether another isolate or an earlier process has verified the key. */
async function isVerified(env: Env, placements: readonly Placement[]): Promise<boolean> {
  const own = placements.find(isOfProviderKey);
  if (own === undefined) return false;
  const { group, partition } = own;
  try {
    const asking =
      env.TRIALS === undefined
        ? poolOf(env, group, partition, null).isVerified()
        : verificationsOf(env).isVerified({ group, partition });
    return await within(ANSWER_MS_MAX, asking);
  } catch {
    // This includes objects of a release without this method.
    return false;
  }
}
