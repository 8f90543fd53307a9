/**
 * A day of calls before an upstream that takes so many at once, with and without a queue in front of it: what
 * docs/patterns.md says of 1,000, 10,000 and 100,000 calls a day, and of which assumptions.
 */

export const DAY_S = 36_000;
export const CALL_S = 8;
const USE_MAX = 0.8;

/** Days are repeated until so many calls came. */
const CALLS_SIMULATED = 50_000;

/** What OpenAI's and Anthropic's SDKs do: 0.5 s, doubled up to 8 s, less a quarter at the most. */
const BACKOFF_S = 0.5;
const BACKOFF_MAX_S = 8;
const JITTER = 0.25;

export interface Load {
  readonly callsPerDay: number;
  readonly perSecond: number;
  readonly slots: number;
}

export function loadOf(callsPerDay: number): Load {
  const perSecond = callsPerDay / DAY_S;
  return { callsPerDay, perSecond, slots: Math.ceil((perSecond * CALL_S) / USE_MAX) };
}

/** What became of the calls of a mean day. */
interface Outcome {
  readonly failed: number;
  /** Tries beyond the first. */
  readonly repeated: number;
  readonly meanWaitS: number;
  /** Of those that were served, one in a hundred waited longer. */
  readonly p99WaitS: number;
}

/** Random times with a given mean, the same on every machine (Lehmer's generator). */
class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  next(): number {
    this.#state = (this.#state * 48_271) % 2_147_483_647;
    return this.#state / 2_147_483_647;
  }

  exponential(mean: number): number {
    return -mean * Math.log(this.next());
  }
}

interface Try {
  readonly at: number;
  readonly since: number;
  readonly tries: number;
}

/** Takes the earliest try out of a short list. */
function takeFirst(pending: Try[]): Try | undefined {
  const at = Math.min(...pending.map((one) => one.at));
  const index = pending.findIndex((one) => one.at === at);
  return pending.splice(index, 1)[0];
}

/** Each client tries so often by itself, with pauses that it chooses. */
export function withRetries({ perSecond, slots, callsPerDay }: Load, triesMax: number): Outcome {
  const chance = new Chance(callsPerDay);
  const pending: Try[] = [];
  let ends: number[] = [];
  const waits: number[] = [];
  let [came, failed, repeated] = [0, 0, 0];
  const come = (after: number): void => {
    came += 1;
    const at = after + chance.exponential(1 / perSecond);
    pending.push({ at, since: at, tries: 1 });
  };
  come(0);
  for (let next = takeFirst(pending); next !== undefined; next = takeFirst(pending)) {
    const { at, since, tries } = next;
    if (tries === 1 && came < CALLS_SIMULATED) come(at);
    ends = ends.filter((end) => end > at);
    if (ends.length < slots) {
      ends.push(at + chance.exponential(CALL_S));
      waits.push(at - since);
    } else if (tries >= triesMax) {
      failed += 1;
    } else {
      repeated += 1;
      const pause = Math.min(BACKOFF_S * 2 ** (tries - 1), BACKOFF_MAX_S);
      pending.push({ at: at + pause * (1 - JITTER * chance.next()), since, tries: tries + 1 });
    }
  }
  const days = came / callsPerDay;
  return { failed: failed / days, repeated: repeated / days, ...waitsOf(waits) };
}

/** One queue in front, first come, first served. */
export function withQueue({ perSecond, slots, callsPerDay }: Load): Outcome {
  const chance = new Chance(callsPerDay);
  const freeAt = Array.from({ length: slots }, () => 0);
  const waits: number[] = [];
  let at = 0;
  for (let call = 0; call < CALLS_SIMULATED; call += 1) {
    at += chance.exponential(1 / perSecond);
    const first = Math.min(...freeAt);
    const startsAt = Math.max(at, first);
    freeAt[freeAt.indexOf(first)] = startsAt + chance.exponential(CALL_S);
    waits.push(startsAt - at);
  }
  return { failed: 0, repeated: 0, ...waitsOf(waits) };
}

function waitsOf(waits: readonly number[]): Pick<Outcome, 'meanWaitS' | 'p99WaitS'> {
  const sorted = waits.toSorted((one, other) => one - other);
  const meanWaitS = sorted.reduce((sum, wait) => sum + wait, 0) / sorted.length;
  return { meanWaitS, p99WaitS: sorted[Math.floor(sorted.length * 0.99)] ?? 0 };
}
