/**
 * Simulates days of calls with a queue, and without one where each client makes three attempts. `node
 * scripts/without-queue.ts` prints the rows of the table in docs/faq.md.
 */
import { FAILED_CALLS, ATTEMPTS_MORE, STEPS_LOST } from '../src/history/costs.ts';

/** Days of calls that arrive at random over ten hours, and take 8 s on average, also at random. */
export const DAYS = [
  { calls: 1_000, slots: 1, platformUsd: 5 },
  { calls: 10_000, slots: 3, platformUsd: 5 },
  { calls: 100_000, slots: 28, platformUsd: 5.49 },
] as const;

const DAY_S = 36_000;
const CALL_S = 8;
const DAYS_A_MONTH = 30;

/** Average cost of a call: 2,000 input tokens at 2.50 USD per million, and 500 output tokens at 10 USD per million. */
const CALL_USD = 0.01;

/** Attempts of each client and pauses between them, as in the official SDKs. */
const ATTEMPTS = 3;
const pauseS = (attempts: number, chance: number): number =>
  Math.min(8, 0.5 * 2 ** (attempts - 1)) * (1 - 0.25 * chance);

interface DayOptions {
  readonly calls: number;
  readonly slots: number;
}

/** Outcome of a day, as fractions of its calls. */
export interface DayOutcome {
  /** With a queue: calls that wait. */
  readonly waited: number;
  /** Without a queue: calls whose three attempts are all rejected, and attempts after the first. */
  readonly failed: number;
  readonly triesMore: number;
}

/** Simulates a number of calls at the load of a day. The same seed results in the same calls. */
export function play({ calls, slots }: DayOptions, played: number, seed: number): DayOutcome {
  const chance = chances(seed);
  const gapS = DAY_S / calls;
  let at = 0;
  const calledFor = Array.from({ length: played }, () => {
    at += -Math.log(1 - chance()) * gapS;
    return { at, takes: -Math.log(1 - chance()) * CALL_S };
  });
  const { failed, refused } = triedAgain(calledFor, slots, chance);
  const parts = (count: number): number => count / played;
  return {
    waited: parts(queued(calledFor, slots)),
    failed: parts(failed),
    // Each rejected attempt is followed by another one, except the last of a call.
    triesMore: parts(refused - failed),
  };
}

interface PlayedCall {
  readonly at: number;
  readonly takes: number;
}

/** Counts calls that wait in a first-come, first-served queue. */
function queued(calls: readonly PlayedCall[], slots: number): number {
  const freeAt = Array.from({ length: slots }, () => 0);
  let waited = 0;
  for (const { at, takes } of calls) {
    const first = freeAt.indexOf(Math.min(...freeAt));
    const begins = Math.max(at, freeAt[first] ?? 0);
    if (begins > at) waited += 1;
    freeAt[first] = begins + takes;
  }
  return waited;
}

/** Counts attempts that find no slot, and calls without a remaining attempt. */
function triedAgain(calls: readonly PlayedCall[], slots: number, chance: () => number) {
  let inFlight: number[] = [];
  const again: { at: number; takes: number; tries: number }[] = [];
  let [failed, refused, next] = [0, 0, 0];
  while (next < calls.length || again.length > 0) {
    again.sort((a, b) => a.at - b.at);
    const fresh = calls[next];
    const isFresh = fresh !== undefined && fresh.at <= (again[0]?.at ?? Infinity);
    const call = isFresh ? { ...fresh, tries: 0 } : again.shift();
    if (call === undefined) break;
    if (isFresh) next += 1;
    const { at, takes, tries: attempts } = call;
    inFlight = inFlight.filter((end) => end > at);
    if (inFlight.length < slots) inFlight.push(at + takes);
    else {
      refused += 1;
      if (attempts + 1 === ATTEMPTS) failed += 1;
      else again.push({ at: at + pauseS(attempts + 1, chance()), takes, tries: attempts + 1 });
    }
  }
  return { failed, refused };
}

/** Returns a pseudorandom generator of numbers from 0 to 1. */
function chances(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Simulated calls for each day of the table. */
const PLAYED = 50_000;

/** Returns the rows of the cost table in docs/faq.md. */
export function tableRows(): string[] {
  return DAYS.map((day) => {
    const { waited, failed, triesMore } = play(day, PLAYED, 1);
    const lostUsd = failed * day.calls * DAYS_A_MONTH * CALL_USD;
    const cells = [
      day.calls.toLocaleString('en'),
      ...[waited, triesMore, failed].map((part) => twoDigits(part * day.calls)),
      `${twoDigits(lostUsd * STEPS_LOST.one)} USD`,
      `${twoDigits(lostUsd * STEPS_LOST.run)} USD`,
      `${day.platformUsd.toFixed(2)} USD`,
    ];
    return `| ${cells.join(' | ')} |`;
  });
}

function twoDigits(value: number): string {
  return Number(value.toPrecision(2)).toLocaleString('en');
}

if (process.argv[1] === import.meta.filename) {
  for (const row of tableRows()) console.log(row);
  for (const day of DAYS) {
    const { waited, failed, triesMore } = play(day, PLAYED, 1);
    const [tries, fails] = [triesMore / waited, failed / waited].map((part) => part.toFixed(2));
    console.log(
      `${day.calls} a day: ${tries} more attempts and ${fails} failed calls for each call that waits`,
    );
  }
  const constants = JSON.stringify({ TRIES_MORE: ATTEMPTS_MORE, FAILED_CALLS });
  console.log(`src/history/costs.ts: ${constants}`);
}
