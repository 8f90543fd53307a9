import { leaseIdOf, type LeaseId } from '../../../src/core/words/ids.ts';
import type { LeaseOutcome } from '../../../src/core/words/outcome.ts';
import type { Ticket } from '../../../src/core/words/ticket.ts';
import type { Clock } from './clock.ts';
import { all, wait, type Process } from './process.ts';
import type { SimGroupAnswer, SimGroup } from './sim-group.ts';

const SLICE_MS = 20_000;
/** A caller asks again this long before its slice ends. */
const AHEAD_MS = 1_000;
const RENEW_MS = 15_000;
/** After a group declined a try, nobody tries there for so long. */
const DECLINED_MS = 1_000;
/** Shortest time for which a slot may be held while its call waits in another group. */
const HOLD_MS_MIN = 1_000;

interface CallerHold {
  readonly group: SimGroup;
  readonly leaseId: LeaseId;
  readonly endGapMs: number;
}

/** When a group declined a try, and the expected wait there. */
export interface Declined {
  readonly at: number;
  readonly waitMs: number;
}

type CallerManner = Partial<Pick<Ticket, 'isTry' | 'waitsElsewhere'>>;

/** One call that needs slots in several groups, and how it gets them: as `ask-groups.ts` does. */
export class SimulatorCaller {
  readonly #clock: Clock;
  readonly #ticket: Ticket;
  readonly #groups: readonly SimGroup[];
  #held: CallerHold[] = [];
  /** When each group last declined a try, as far as this part of the network knows, and the wait there. */
  readonly #declined: Map<SimGroup, Declined>;
  #attempts = 0;
  /** How often it has given a slot back, and where. */
  #returns = 0;
  readonly #hadTurn = new Set<SimGroup>();
  isAlive = true;

  constructor(
    clock: Clock,
    ticket: Ticket,
    groups: readonly SimGroup[],
    declined: Map<SimGroup, Declined> = new Map(),
  ) {
    this.#clock = clock;
    this.#ticket = ticket;
    this.#groups = groups;
    this.#declined = declined;
  }

  /** All slots, or false: some group refused. Then nothing is held. */
  *admit(): Process<boolean> {
    const [sole, ...others] = this.#groups;
    if (sole !== undefined && others.length === 0) {
      return (yield* this.#ask(sole, {})).kind === 'granted';
    }
    for (let isFirst = true; ; isFirst = false) {
      const missing = this.#groups.filter((group) => !this.#has(group));
      const known = isFirst ? missing.filter((one) => this.#isFull(one)) : [];
      const waits = new Map<SimGroup, number>();
      if (known.length === 0) {
        const before = [...this.#held];
        const answers = yield* all(missing.map((group) => this.#ask(group, { isTry: true })));
        if (answers.some(({ kind }) => kind === 'refused')) return this.#refused();
        if (this.#held.length === this.#groups.length) {
          for (const { group, leaseId } of before) group.send({ kind: 'confirm', leaseId });
          return true;
        }
        for (const hold of this.#held.filter((one) => !before.includes(one))) this.#return(hold);
        for (const [index, answer] of answers.entries()) {
          const group = missing[index];
          if (answer.kind !== 'declined' || group === undefined) continue;
          const waitMs = answer.waitMs ?? Infinity;
          waits.set(group, waitMs);
          if (isFirst) this.#declined.set(group, { at: this.#clock.now, waitMs });
          known.push(group);
        }
      }
      const waitMsOf = (group: SimGroup): number =>
        waits.get(group) ?? this.#declined.get(group)?.waitMs ?? Infinity;
      const longest = known.reduce((one, other) => (waitMsOf(other) > waitMsOf(one) ? other : one));
      const held = this.#limit(waitMsOf(longest), longest);
      const answer = yield* this.#ask(longest, { waitsElsewhere: true });
      for (const one of held) one.isOver = true;
      if (answer.kind !== 'granted') return this.#refused();
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

  /** Gives back what may not be held for that long, now or when its time is over. */
  #limit(waitMs: number, other: SimGroup): { isOver: boolean }[] {
    const returns = this.#returns;
    return this.#held.map((hold) => {
      const entry = { isOver: false };
      const usualMs = Math.max(HOLD_MS_MIN, hold.endGapMs);
      const unknownMs = returns > 2 ? usualMs : HOLD_MS_MIN;
      const isLonger = returns > 0 && hold.group.name < other.name;
      const onceMs = (waitMs === Infinity ? unknownMs : usualMs) * (isLonger ? 2 : 1);
      const holdMsMax = onceMs * (1 + returns);
      const end = (): void => {
        if (!entry.isOver && this.#held.includes(hold)) {
          const forMs = waitMs === Infinity ? 0 : Math.max(100, waitMs - holdMsMax);
          this.#return(hold, { pool: other.name, forMs });
        }
      };
      const isTooLong = waitMs === Infinity ? returns < 2 : waitMs > holdMsMax;
      if (isTooLong) end();
      else this.#clock.after(holdMsMax, end);
      return entry;
    });
  }

  #refused(): false {
    this.#giveBack('unused');
    return false;
  }

  #has(group: SimGroup): boolean {
    return this.#held.some((hold) => hold.group === group);
  }

  /** Asks slice after slice until there is a definite answer. */
  *#ask(group: SimGroup, manner: CallerManner): Process<SimGroupAnswer> {
    const needs = this.#groups.filter((other) => other !== group && !this.#has(other));
    const ticket = {
      ...this.#ticket,
      ...manner,
      needs: needs.map(({ name }) => name),
      ...(this.#hadTurn.has(group) && { hadTurn: true }),
    };
    this.#attempts += 1;
    const attempt = this.#attempts;
    for (;;) {
      const answer = yield* wait<SimGroupAnswer>((resume) =>
        this.#askSlices(group, ticket, attempt, resume),
      );
      if (answer.kind === 'lost') continue;
      if (answer.kind === 'granted') {
        this.#hold(group, leaseIdOf(ticket.id, attempt), answer.endGapMs);
      }
      return answer;
    }
  }

  #askSlices(
    group: SimGroup,
    ticket: Ticket,
    attempt: number,
    resume: (answer: SimGroupAnswer) => void,
  ): void {
    let isOpen = true;
    const hear = (answer: SimGroupAnswer): void => {
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

  #hold(group: SimGroup, leaseId: LeaseId, endGapMs: number): void {
    const hold = { group, leaseId, endGapMs };
    this.#held.push(hold);
    const renew = (): void => {
      if (!this.isAlive || !this.#held.includes(hold)) return;
      group.renew(this.#ticket, leaseId);
      this.#clock.after(RENEW_MS, renew);
    };
    this.#clock.after(RENEW_MS, renew);
  }

  #giveBack(outcome: LeaseOutcome): void {
    for (const { group, leaseId } of this.#held) {
      group.release(this.#ticket, leaseId, outcome);
    }
    this.#held = [];
  }

  #return(hold: CallerHold, full?: { pool: string; forMs: number }): void {
    if (full !== undefined) {
      this.#returns += 1;
      this.#hadTurn.add(hold.group);
      if (full.forMs > 0) hold.group.send({ kind: 'pass_over', ...full });
    }
    hold.group.release(this.#ticket, hold.leaseId, 'unused');
    this.#held = this.#held.filter((one) => one !== hold);
  }

  #isFull(group: SimGroup): boolean {
    return this.#clock.now - (this.#declined.get(group)?.at ?? -Infinity) < DECLINED_MS;
  }

  *#pause(ms: number): Process {
    yield* wait<void>((resume) => this.#clock.after(ms, resume));
  }
}
