import { isTaken } from '../../core/words/outcome.ts';
import { BoundedSet } from '../../core/parts/bounded-map.ts';
import { LEASE_TTL_MS } from '../../core/words/settings.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import { verificationsOf, type Env } from '../../env.ts';
import { FailedAttempts } from '../../runtime/failed-attempts.ts';
import { poolOf } from '../../routing/pool.ts';
import { isOfProviderKey } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';
import { within } from '../../runtime/within.ts';
import { addressOf } from '../../runtime/address.ts';
import { rejected, type Rejected } from '../result.ts';
import { pause } from '../../runtime/background.ts';

/** Keys of one address that were refused within a minute and cost nothing: people mistype, and keys are revoked. */
const FREE = 10;

/** Minimum delay of a key that had no success. It grows each time, up to the maximum. */
const DELAY_MS_MIN = 100;
const DELAY_MS_MAX = 1_000;

/** Maximum time for a pool to say whether its key is good. */
const ANSWER_MS_MAX = 1_000;

/** Maximum of keys that this isolate knows as good; of others it asks again. */
const GOOD_MAX = 10_000;

/**
 * Maximum of keys without a success that have calls under way at once. Of addresses that wait there are fewer,
 * so that there is room for whoever comes from elsewhere.
 */
const UNDER_WAY_MAX = 1_000;
const UNDER_WAY_WAITING_MAX = 500;

/** The same for leases, which keep their place until they expire. The other half is always left to calls. */
const LEASED_MAX = 500;

/**
 * Maximum of keys that were told to come again. A made-up one comes but once, so a real one has room.
 */
const COMING_AGAIN_MAX = 10_000;
const COME_AGAIN_MS = 1_000;

/**
 * Maximum of wrong gateway keys that wait at once. Nothing is behind them, so the others are told without a
 * wait.
 */
const UNKNOWN_WAITING_MAX = 500;

const refused = new FailedAttempts();
const good = new BoundedSet<string>(GOOD_MAX);
const comingAgain = new BoundedSet<string>(COMING_AGAIN_MAX);

interface NewKeyCalls {
  calls: number;
  /** When its leases expire unless they are renewed. 0: it holds no leases. */
  leasedUntil: number;
}

/** Calls and leases of each key without a success. */
const underWay = new Map<string, NewKeyCalls>();
let unknownWaiting = 0;

/** A place of a call among those of keys without a success. */
export interface NewKeySeat {
  readonly kind: 'taken';
  /** To be called when the call has its answer. */
  readonly leave: () => void;
}

interface NewKeyRequest {
  readonly request: Request;
  readonly env: Env;
}

/**
 * Takes a place for a call of a caller's own key, where that key had no success yet: one that had some needs none.
 * Nothing else of the call is looked at before, so that it costs little to be turned away.
 */
export function takePlace(asked: NewKeyRequest, key: string): NewKeySeat | Rejected {
  return takeOneOf(key, () => placesFor(asked, key));
}

/** The same for a lease. Its place is freed when its request ends, unless `keepPlace` is called. */
export function takeLeasePlace(asked: NewKeyRequest, key: string): NewKeySeat | Rejected {
  return takeOneOf(key, () => Math.min(LEASED_MAX, placesFor(asked, key)));
}

/** Keeps the place of a key without a success until its lease expires, or longer if another of its leases does. */
export function keepPlace(key: string, expiresAt: number): void {
  if (good.has(key)) return;
  // The clock of the pool may be ahead of this one.
  const untilAt = Math.min(expiresAt, steadyClock.now() + LEASE_TTL_MS);
  const { calls = 0, leasedUntil = 0 } = underWay.get(key) ?? {};
  underWay.set(key, { calls, leasedUntil: Math.max(leasedUntil, untilAt) });
}

function takeOneOf(key: string, places: () => number): NewKeySeat | Rejected {
  if (good.has(key)) return NO_PLACE;
  const known = underWay.get(key);
  if (known === undefined && underWay.size >= places() && !hasRoomFor(places())) {
    return rejectForNow(key);
  }
  underWay.set(key, { calls: (known?.calls ?? 0) + 1, leasedUntil: known?.leasedUntil ?? 0 });
  const leave = (): void => {
    const held = underWay.get(key);
    if (held === undefined) return;
    held.calls -= 1;
    if (isOver(held)) underWay.delete(key);
  };
  return { kind: 'taken', leave };
}

/** Whether there is room after the places of expired leases are freed. */
function hasRoomFor(places: number): boolean {
  for (const [key, held] of underWay) if (isOver(held)) underWay.delete(key);
  return underWay.size < places;
}

function isOver({ calls, leasedUntil }: NewKeyCalls): boolean {
  return calls === 0 && steadyClock.now() >= leasedUntil;
}

/**
 * Makes a key that had no success wait where its address sends keys that are refused. One that had some is
 * served at once, whoever else comes from there.
 */
export async function delayNewKey(
  asked: NewKeyRequest,
  key: string,
  placements: readonly Placement[],
): Promise<void> {
  const delayMs = delayFor(recentlyRefused(asked));
  if (delayMs === 0 || good.has(key)) return;
  if (await isVerified(asked.env, placements)) good.add(key);
  else await pauseFor(asked.request, delayMs);
}

/**
 * Notes what the upstream said to a key, by all its names. Lists of models are there for everybody: they prove
 * nothing.
 */
export function noteKeyAnswer(
  asked: NewKeyRequest,
  keys: readonly string[],
  status: number,
  isGenerating: boolean,
): void {
  if (isTaken(status) && isGenerating) {
    for (const key of keys) good.add(key);
  } else if ((status === 401 || status === 403) && !keys.some((key) => good.has(key))) {
    countRefused(asked);
  }
}

/** The same for a gateway key that nobody knows, which waits before it is told so. */
export async function delayUnknownKey(asked: NewKeyRequest): Promise<void> {
  const delayMs = delayFor(countRefused(asked));
  if (delayMs === 0 || unknownWaiting >= UNKNOWN_WAITING_MAX) return;
  unknownWaiting += 1;
  await pauseFor(asked.request, delayMs);
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

/** Whether one of these names belongs to a key that had a success or has a call or lease in progress here. */
export function isFamiliar(names: readonly string[]): boolean {
  return names.some((name) => good.has(name) || underWay.has(name));
}

function placesFor(asked: NewKeyRequest, key: string): number {
  const isOfWaiting = delayFor(recentlyRefused(asked)) > 0 && !comingAgain.has(key);
  return isOfWaiting ? UNDER_WAY_WAITING_MAX : UNDER_WAY_MAX;
}

function rejectForNow(key: string): Rejected {
  comingAgain.add(key);
  const message =
    'Too many keys that never had a success are being tried, most of which are refused. Try again in a moment.';
  return rejected({ reason: 'busy', message, retryAfterMs: COME_AGAIN_MS });
}

/** The place of a call whose key needs none. */
export const NO_PLACE: NewKeySeat = { kind: 'taken', leave() {} };

function recentlyRefused(asked: NewKeyRequest): number {
  return refused.recent(addressFor(asked), steadyClock.now());
}

function countRefused(asked: NewKeyRequest): number {
  return refused.count(addressFor(asked), steadyClock.now());
}

function addressFor({ request, env }: NewKeyRequest): string {
  return addressOf(env, request);
}

function delayFor(failures: number): number {
  if (failures <= FREE) return 0;
  return Math.min(DELAY_MS_MAX, DELAY_MS_MIN * 2 ** (failures - FREE - 1));
}

async function pauseFor({ signal }: Request, ms: number): Promise<void> {
  const { promise: left, resolve } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => resolve(), { once: true });
  await Promise.race([pause(ms), left]);
}

/** Asks whether the key had a success that another isolate, or an earlier process, knows of. */
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
    // Also from an object that does not know the question yet.
    return false;
  }
}
