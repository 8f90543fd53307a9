import assert from 'node:assert/strict';
import type { Effect, GroupEvent } from '../../src/core/events.ts';
import { instant, leaseIdOf, ticketId, type InstantMs, type LeaseId } from '../../src/core/ids.ts';
import { checkInvariants } from '../../src/core/invariants.ts';
import { recover } from '../../src/core/recover.ts';
import type { GroupSettings } from '../../src/core/settings.ts';
import { emptyState, slotsInUse, type GroupState, type Lease } from '../../src/core/state.ts';
import { nextWakeAt, step } from '../../src/core/step.ts';
import type { Ticket } from '../../src/core/ticket.ts';
import { answersOf, SOMEBODY, START } from '../support/core-builders.ts';
import type { Action } from './actions.ts';
import { AskLedger } from './ask-ledger.ts';
import { LeaseTable } from './lease-table.ts';
import { NaiveGroup } from './naive-group.ts';

/** When a world ticks: after each jump in time; only when the group asks for it; or far more often. */
export type Ticking = 'after_jumps' | 'at_wakes' | 'around_dues';

interface Issued {
  readonly ticket: Ticket;
  attempt: number;
}

/** Attachments of one instance lie below those of the next. */
const ATTACHMENTS_PER_INSTANCE = 1_000_000;

/**
 * The core with everything around it that it needs to live: a clock, rows, callers that are parked, and
 * beside it the naive group that it must agree with. Every step is checked.
 */
export class World {
  readonly naive: NaiveGroup;
  now: InstantMs = START;
  /** Every answer, with its time. */
  readonly log: string[] = [];
  /** Every effect of every step, as text. */
  readonly history: string[] = [];
  readonly #ticking: Ticking;
  readonly #table = new LeaseTable();
  readonly #asks = new AskLedger();
  readonly #issued: Issued[] = [];
  readonly #attachments = new Map<LeaseId, number[]>();
  #state: GroupState;
  #instances = 1;

  constructor(settings: GroupSettings, ticking: Ticking) {
    this.#ticking = ticking;
    this.#state = emptyState(settings, 1);
    this.naive = new NaiveGroup(settings);
  }

  run(action: Action): void {
    if (action.kind === 'advance') return this.#advanceTo(this.now + action.ms);
    if (action.kind === 'reset') return this.#reset(action.isLossy);
    if (action.kind === 'advance_to_due') {
      const due = this.naive.nextDueAt(this.now);
      if (due !== Infinity) this.#advanceTo(Math.max(this.now, due + action.offsetMs));
      return;
    }
    // Asking to resume is an ask of its own: what is due for the parked one comes first.
    if (action.kind === 'resume') this.#step({ kind: 'tick' });
    this.#step(this.#eventOf(action));
  }

  /** Lets every call end in order and checks that nothing stays behind. */
  windUp(): void {
    const settings = { ...this.naive.settings, slotsMax: Infinity, paused: false };
    this.#step({ kind: 'reconfigure', settings });
    for (let wakes = 0; this.naive.nextDueAt(this.now) !== Infinity; wakes += 1) {
      assert.ok(wakes < 1_000, 'time alone does not bring the group to rest');
      const wakeAt = nextWakeAt(this.#state, this.now);
      assert.notEqual(wakeAt, Infinity, 'the group sleeps while something is due');
      this.#moveTo(Math.max(wakeAt, this.now));
      this.#step({ kind: 'tick' });
    }
    this.#table.write();
    this.#asks.assertAllAnswered();
    assert.equal(slotsInUse(this.#state), 0, 'a lease stayed behind');
    assert.equal(this.#state.queue.line.length, 0, 'a waiter stayed behind');
    assert.deepEqual(this.#table.rows(), [], 'a row stayed behind');
  }

  #eventOf(action: Exclude<Action, { kind: 'advance' | 'advance_to_due' | 'reset' }>): GroupEvent {
    if (action.kind === 'ask') return this.#newAsk(action);
    if (action.kind === 'move') return action;
    if (action.kind === 'reconfigure') {
      return { kind: 'reconfigure', settings: { ...this.naive.settings, ...action.changes } };
    }
    const issued = this.#picked(action.pick);
    const { ticket, attempt } = issued;
    const leaseId = leaseIdOf(ticket.id, attempt);
    switch (action.kind) {
      case 'ask_again':
        return { kind: 'acquire', ticket, leaseId, sliceMs: action.sliceMs };
      case 'next_attempt': {
        // The attempt before has ended by then, or it would be the same ask.
        const waits = this.#state.queue.byTicket.has(ticket.id);
        const next = waits ? leaseId : leaseIdOf(ticket.id, ++issued.attempt);
        return { kind: 'acquire', ticket, leaseId: next, sliceMs: 30_000 };
      }
      case 'release':
        return { kind: 'release', leaseId, outcome: action.outcome };
      case 'detach': {
        const attachment = this.#attachments.get(leaseId)?.at(-1 - action.back) ?? -1;
        return { kind: 'detach', leaseId, attachment };
      }
      case 'cancel':
        return { kind: 'cancel', ticketId: ticket.id };
      case 'resume':
        return { kind: 'resume', leaseId, ticketId: ticket.id, holder: SOMEBODY };
      case 'renew':
      case 'revoke':
        return { kind: action.kind, leaseId };
    }
  }

  #newAsk(action: Extract<Action, { kind: 'ask' }>): GroupEvent {
    const { ageMs, patienceMs, wait, sliceMs } = action;
    const ticket: Ticket = {
      id: ticketId(`t${this.#issued.length}`),
      holder: SOMEBODY,
      enqueuedAt: instant(this.now - ageMs),
      deadlineAt: patienceMs === null ? null : instant(this.now + patienceMs),
      wait,
    };
    this.#issued.push({ ticket, attempt: 1 });
    return { kind: 'acquire', ticket, leaseId: leaseIdOf(ticket.id, 1), sliceMs };
  }

  #picked(pick: number): Issued {
    const found = this.#issued.at(-1 - pick);
    if (found !== undefined) return found;
    const id = ticketId(`stranger${this.#issued.length}`);
    const ticket = { id, holder: SOMEBODY, enqueuedAt: this.now, deadlineAt: null, wait: true };
    const stranger = { ticket, attempt: 1 };
    this.#issued.unshift(stranger);
    return stranger;
  }

  #advanceTo(target: number): void {
    for (let at = this.#nextTick(target); at <= target; at = this.#nextTick(target)) {
      this.#moveTo(at);
      this.#step({ kind: 'tick' });
    }
    this.#moveTo(target);
  }

  /** When to tick next on the way to `target`; Infinity: not before it. */
  #nextTick(target: number): number {
    if (this.#ticking === 'after_jumps') return this.now < target ? target : Infinity;
    if (this.#ticking === 'at_wakes') return Math.max(this.now, nextWakeAt(this.#state, this.now));
    const due = this.naive.nextDueAt(this.now);
    if (due <= this.now) return this.now;
    if (this.now >= target) return Infinity;
    // Straight to the millisecond before the next due instant, and from there in single ones.
    return Math.min(target, Math.max(this.now + 1, due - 1));
  }

  #moveTo(at: number): void {
    this.now = instant(Math.max(this.now, at));
    this.#table.advanceTo(this.now);
  }

  #step(event: GroupEvent): void {
    const grantedBefore = this.#state.totals.granted;
    this.#asks.expect(event, this.#state);
    const effects = step(this.#state, event, this.now);
    this.#table.note(effects, this.now);
    const answers = answersOf(effects);
    const told = `at ${this.now - START}, ${event.kind}`;
    assert.deepEqual(answers, this.naive.handle(event, this.now), told);
    for (const answer of answers) this.log.push(`${this.now - START} ${answer}`);
    this.history.push(JSON.stringify([this.now, effects]));
    this.#noteAttachments(effects);
    this.#asks.settle(effects, this.#state);
    this.#check(told, this.#state.totals.granted > grantedBefore);
    if (event.kind === 'tick') {
      assert.ok(nextWakeAt(this.#state, this.now) > this.now, `${told}: it would spin`);
    }
  }

  #reset(isLossy: boolean): void {
    const granted = [...this.#state.leases.values()].filter(({ phase }) => phase !== 'cooling');
    if (isLossy) this.#table.lose();
    else this.#table.write();
    const rows = this.#table.rows();
    for (const { id } of granted) {
      assert.ok(
        rows.some((row) => row.id === id),
        `${id} was granted and has no row`,
      );
    }
    if (!isLossy) {
      const written = rows.map(({ id, phase, extendedUntil, coolingUntil }) => {
        return `${id} ${phase} ${coolingUntil ?? extendedUntil}`;
      });
      const expected = this.naive.leases().map(({ id, phase, extendedUntil, until }) => {
        return `${id} ${phase} ${phase === 'cooling' ? until : extendedUntil}`;
      });
      assert.deepEqual(written.toSorted(), expected.toSorted(), 'the rows tell something else');
    }
    const { settings } = this.#state;
    const firstAttachment = ATTACHMENTS_PER_INSTANCE * this.#instances++;
    const { state, effects } = recover(settings, rows, firstAttachment, this.now);
    this.#state = state;
    this.#table.note(effects, this.now);
    this.naive.recover(rows, firstAttachment, this.now);
    this.#asks.clear();
    this.#check(`at ${this.now - START}, reset`, false);
  }

  #noteAttachments(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind !== 'grant') continue;
      const { id, attachment } = effect.lease;
      const earlier = this.#attachments.get(id) ?? [];
      assert.ok(attachment > (earlier.at(-1) ?? 0), `${id} got no larger attachment`);
      this.#attachments.set(id, [...earlier, attachment]);
    }
  }

  /** What must hold after every step. */
  #check(told: string, hasGranted: boolean): void {
    const { leases, queue, settings } = this.#state;
    assert.deepEqual(checkInvariants(this.#state, this.now), [], told);
    assert.equal(slotsInUse(this.#state), this.naive.leases().length, told);
    if (hasGranted) {
      assert.ok(leases.size <= settings.slotsMax, `${told}: granted above the limit`);
      assert.ok(!settings.paused, `${told}: granted while paused`);
    }
    assert.deepEqual([...leases.values()].map(faceOf), this.naive.leases().map(faceOf), told);
    const line = queue.line.map(({ ticket, leaseId, deadlineAt, sliceEndsAt }) => {
      return { ticketId: ticket.id, leaseId, deadlineAt, sliceEndsAt };
    });
    const naiveLine = this.naive.line().map(({ ticketId: id, leaseId, ...waiter }) => {
      const { deadlineAt, sliceEndsAt } = waiter;
      return { ticketId: id, leaseId, deadlineAt, sliceEndsAt };
    });
    assert.deepEqual(line, naiveLine, told);
    const wakeAt = nextWakeAt(this.#state, this.now);
    assert.ok(wakeAt <= this.naive.nextDueAt(this.now), `${told}: it would sleep too long`);
  }
}

/** What of a lease must be the same in both groups. An extension means nothing once it cools down. */
function faceOf(lease: Omit<Lease, 'holder' | 'grantedAt'>): unknown {
  const { id, phase, until, attachment, extendedUntil } = lease;
  return [id, phase, until, attachment, phase === 'cooling' ? null : extendedUntil];
}
