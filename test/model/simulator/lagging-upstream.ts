import { SERVED, type UpstreamSignal } from '../../../src/core/words/signal.ts';
import type { Ticket } from '../../../src/core/words/ticket.ts';
import { wantsServed } from '../../../src/core/upstream-signals.ts';
import { instant, leaseIdOf } from '../../../src/core/words/ids.ts';
import { START } from '../../support/core-builders.ts';
import type { Clock } from './clock.ts';
import { wait, type Process } from './process.ts';
import type { SimGroupAnswer, SimGroup } from './sim-group.ts';
import { rest } from './workload.ts';

const TOO_MANY: UpstreamSignal = { ...SERVED, kind: 'concurrency' };

/** How often a Worker sends a refused call again: then its caller sees the refusal. */
const REENTRIES_MAX = 6;

const SLICE_MS = 20_000;

/** One way to the upstream. */
const TRIP_MS = 1;

/** An upstream that refuses what exceeds a number of calls at once, and counts each for a while after its end. */
export class LaggingUpstream {
  /** The calls that it takes at once. */
  capacity: number;
  readonly #clock: Clock;
  /** How much longer it counts a call that ends now. */
  readonly #lagMs: () => number;
  /** Calls that it counts. */
  #counted = 0;
  accepted = 0;
  refused = 0;
  /** Refusals that were passed on. */
  seen = 0;
  /** The most refusals of one call. */
  refusalsOfOne = 0;
  /** When the last call ended. */
  lastEndAt = 0;

  constructor(clock: Clock, capacity: number, lagMs: () => number) {
    this.#clock = clock;
    this.capacity = capacity;
    this.#lagMs = lagMs;
  }

  /** Takes one call from its ask to its end, with all its tries. */
  *call(group: SimGroup, ticket: Ticket, serviceMs: number): Process {
    for (let attempt = 1; attempt <= 1 + REENTRIES_MAX; attempt += 1) {
      yield* this.#ask(group, ticket, attempt);
      if (yield* this.#send(group, ticket, attempt, serviceMs)) return;
      this.refusalsOfOne = Math.max(this.refusalsOfOne, attempt);
    }
    this.seen += 1;
  }

  /** Sends it once, and tells whether it was accepted. */
  *#send(group: SimGroup, ticket: Ticket, attempt: number, serviceMs: number): Process<boolean> {
    const leaseId = leaseIdOf(ticket.id, attempt);
    const now = instant(START + this.#clock.now);
    const isAsked = group.state.serving.some((member) => wantsServed(member, now));
    const report = (signal: UpstreamSignal): void => {
      group.send({ kind: 'report', leaseId, signal, isRepeat: false });
    };
    yield* rest(this.#clock, TRIP_MS);
    if (this.#counted >= this.capacity) {
      this.refused += 1;
      yield* rest(this.#clock, TRIP_MS);
      report(TOO_MANY);
      group.release(ticket, leaseId, 'failed');
      return false;
    }
    this.#counted += 1;
    this.accepted += 1;
    const headersMs = serviceMs / 2;
    yield* rest(this.#clock, headersMs);
    if (isAsked) report(SERVED);
    yield* rest(this.#clock, serviceMs - headersMs);
    this.lastEndAt = this.#clock.now;
    this.#clock.after(this.#lagMs(), () => (this.#counted -= 1));
    yield* rest(this.#clock, TRIP_MS);
    group.release(ticket, leaseId, 'success');
    return true;
  }

  *#ask(group: SimGroup, ticket: Ticket, attempt: number): Process {
    for (;;) {
      const answer = yield* wait<SimGroupAnswer>((resume) => {
        group.ask(ticket, attempt, SLICE_MS, resume);
      });
      if (answer.kind === 'granted') return;
      if (answer.kind !== 'lost') throw new Error(`${ticket.id} was ${answer.kind}`);
    }
  }
}
