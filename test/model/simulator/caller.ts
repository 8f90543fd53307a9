import { leaseIdOf, type LeaseId } from '../../../src/core/words/ids.ts';
import type { Outcome } from '../../../src/core/words/outcome.ts';
import type { Ticket } from '../../../src/core/words/ticket.ts';
import type { Clock } from './clock.ts';
import { all, wait, type Process } from './process.ts';
import type { Answer, SimGroup } from './sim-group.ts';

const SLICE_MS = 20_000;
/** A caller asks again this long before its slice ends. */
const AHEAD_MS = 1_000;
const RENEW_MS = 15_000;
/** After a group declined a try, nobody tries there for so long. */
const DECLINED_MS = 1_000;
const REOPENED_POLL_MS = 500;

interface Hold {
  readonly group: SimGroup;
  readonly leaseId: LeaseId;
}

type Manner = Partial<Pick<Ticket, 'isTry' | 'waitsElsewhere' | 'holdsNarrower'>>;

/** One call that needs slots in several groups, and how it gets them. */
export class Caller {
  readonly #clock: Clock;
  readonly #ticket: Ticket;
  /** In the order in which they are taken: narrow first, unless a test wants it wrong. */
  readonly #groups: readonly SimGroup[];
  #held: Hold[] = [];
  /** When each group last declined a try, as far as this part of the network knows. */
  readonly #declinedAt: Map<SimGroup, number>;
  isAlive = true;

  constructor(
    clock: Clock,
    ticket: Ticket,
    groups: readonly SimGroup[],
    declinedAt: Map<SimGroup, number> = new Map(),
  ) {
    this.#clock = clock;
    this.#ticket = ticket;
    this.#groups = groups;
    this.#declinedAt = declinedAt;
  }

  /** All slots, or false: some group refused. Then nothing is held. */
  *admit(): Process<boolean> {
    const isAlone = this.#groups.length === 1;
    for (let attempt = 1; ; attempt += 2) {
      const mayTry = !isAlone && !this.#groups.some((group) => this.#declinedLately(group));
      if (mayTry && (yield* this.#tryAll(attempt))) return true;
      const taken = yield* this.#takeInOrder(attempt + 1);
      if (taken !== 'paused') return taken;
      yield* this.#untilOpened();
    }
  }

  /** Runs for its time at the upstream, and gives all slots back. */
  *run(serviceMs: number): Process {
    const { slots } = this.#ticket;
    for (const { group } of this.#held) group.run(slots);
    yield* this.#pause(serviceMs);
    for (const { group } of this.#held) group.run(-slots);
    if (this.isAlive) this.#giveBack('success');
  }

  /** Its process dies: it renews and releases nothing any more. */
  die(): void {
    this.isAlive = false;
  }

  *#tryAll(attempt: number): Process<boolean> {
    const answers = yield* all(
      this.#groups.map((group) => this.#ask(group, attempt, { isTry: true })),
    );
    for (const [index, group] of this.#groups.entries()) {
      if (answers[index]?.kind !== 'granted') this.#declinedAt.set(group, this.#clock.now);
    }
    if (this.#held.length === this.#groups.length) return true;
    this.#giveBack('unused');
    return false;
  }

  *#takeInOrder(attempt: number): Process<boolean | 'paused'> {
    const last = this.#groups.length - 1;
    for (const [index, group] of this.#groups.entries()) {
      const manner = { waitsElsewhere: index < last, holdsNarrower: index > 0 };
      const answer = yield* this.#ask(group, attempt, manner);
      if (answer.kind === 'granted') continue;
      this.#giveBack('unused');
      return answer.kind === 'declined' ? 'paused' : false;
    }
    for (const { group, leaseId } of this.#held.slice(0, -1)) {
      group.send({ kind: 'confirm', leaseId });
    }
    return true;
  }

  *#untilOpened(): Process {
    while (this.#groups.some(({ state }) => state.settings.paused)) {
      yield* this.#pause(REOPENED_POLL_MS);
    }
  }

  /** Asks slice after slice until there is a definite answer. */
  *#ask(group: SimGroup, attempt: number, manner: Manner): Process<Answer> {
    const ticket = { ...this.#ticket, ...manner };
    for (;;) {
      const answer = yield* wait<Answer>((resume) =>
        this.#askSlices(group, ticket, attempt, resume),
      );
      if (answer.kind === 'lost') continue;
      if (answer.kind === 'granted') this.#hold(group, leaseIdOf(ticket.id, attempt));
      return answer;
    }
  }

  #askSlices(
    group: SimGroup,
    ticket: Ticket,
    attempt: number,
    resume: (answer: Answer) => void,
  ): void {
    let isOpen = true;
    const hear = (answer: Answer): void => {
      if (!isOpen) return;
      isOpen = false;
      resume(answer);
    };
    const ask = (): void => {
      if (!isOpen) return;
      group.ask(ticket, attempt, SLICE_MS, hear);
      this.#clock.after(SLICE_MS - AHEAD_MS, ask);
    };
    ask();
  }

  #hold(group: SimGroup, leaseId: LeaseId): void {
    const hold = { group, leaseId };
    this.#held.push(hold);
    const renew = (): void => {
      if (!this.isAlive || !this.#held.includes(hold)) return;
      group.renew(this.#ticket, leaseId);
      this.#clock.after(RENEW_MS, renew);
    };
    this.#clock.after(RENEW_MS, renew);
  }

  #giveBack(outcome: Outcome): void {
    for (const { group, leaseId } of this.#held) {
      group.release(this.#ticket, leaseId, outcome);
    }
    this.#held = [];
  }

  #declinedLately(group: SimGroup): boolean {
    return this.#clock.now - (this.#declinedAt.get(group) ?? -Infinity) < DECLINED_MS;
  }

  *#pause(ms: number): Process {
    yield* wait<void>((resume) => this.#clock.after(ms, resume));
  }
}
