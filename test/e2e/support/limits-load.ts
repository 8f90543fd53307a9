import type { StrictSeenRefusal, StrictArrival } from '../../strict-upstream/counts.ts';
import type { LifecycleOpenCall } from './lifecycle-call.ts';
import { clock } from './lifecycle-wait.ts';
import type { OrderLoadSpan } from './order-load.ts';
import { slotSeconds } from './order-load.ts';

/** How the calls of some clients ended: the status, or `cut` for one that broke; and how many did. */
export type Endings = Readonly<Record<string, number>>;

async function endingOf(call: LifecycleOpenCall): Promise<string> {
  const status = await call.answered.catch(() => 0);
  return (await call.ended) === 'complete' ? String(status) : 'cut';
}

/** Waits for all of these calls, and counts how they ended. */
export async function endingsOf(calls: readonly LifecycleOpenCall[]): Promise<Endings> {
  const endings: Record<string, number> = {};
  for (const ending of await Promise.all(calls.map(endingOf))) {
    endings[ending] = (endings[ending] ?? 0) + 1;
  }
  return endings;
}

/** Clients that never leave the queue empty: each call that ends is followed by another. */
export class FullQueue {
  readonly #send: (index: number) => LifecycleOpenCall;
  readonly #waiting = new Set<LifecycleOpenCall>();
  readonly #answered: LifecycleOpenCall[] = [];
  readonly #turns: Promise<void[]>;
  #sent = 0;
  #isOver = false;

  constructor(clients: number, send: (index: number) => LifecycleOpenCall) {
    this.#send = send;
    this.#turns = Promise.all(Array.from({ length: clients }, () => this.#takeTurns()));
  }

  /** Has those leave who still wait, and counts how the calls of all others ended. */
  async stop(): Promise<Endings> {
    this.#isOver = true;
    for (const call of this.#waiting) call.leave('RST');
    await this.#turns;
    return endingsOf(this.#answered);
  }

  async #takeTurns(): Promise<void> {
    while (!this.#isOver) {
      const call = this.#send(this.#sent++);
      this.#waiting.add(call);
      await call.answered.then(
        () => this.#answered.push(call),
        () => this.#isOver || this.#answered.push(call),
      );
      this.#waiting.delete(call);
      await call.ended;
    }
  }
}

/** Probes of a limit that has settled are further apart, whatever their outcome. */
const PROBES_APART_MS = 4_000;

/** The last refusal that was no probe, because it came soon after another; `from` where there is none. */
export function lastExcessAt(refusals: readonly StrictSeenRefusal[], from: number): number {
  return refusals.reduce((last, { at }, index) => {
    const before = refusals[index - 1]?.at ?? -Infinity;
    return at >= from && at - before < PROBES_APART_MS ? at : last;
  }, from);
}

/** View of an upstream with so many slots in a stretch of time. */
export interface LimitsLoadSeen {
  /** The part of its slots' time that calls took which it served. */
  readonly used: number;
  /** The part of the attempts that it refused. */
  readonly refused: number;
}

/** Works out what an upstream of so many slots saw. */
export function seenIn(
  arrivals: readonly StrictArrival[],
  slots: number,
  span: OrderLoadSpan,
): LimitsLoadSeen {
  const within = arrivals.filter(({ at }) => at >= span.from && at < span.to);
  const served = arrivals.filter(({ refusedAs }) => refusedAs === null);
  return {
    used: slotSeconds(served, '', span) / ((slots * (span.to - span.from)) / 1_000),
    refused: within.filter(({ refusedAs }) => refusedAs !== null).length / within.length,
  };
}

/** The stretch of time from `from` to now. */
export const since = (from: number): OrderLoadSpan => ({ from, to: clock() });
