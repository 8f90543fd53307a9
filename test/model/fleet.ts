import { cooldownMs } from '../../src/core/capacity.ts';
import assert from 'node:assert/strict';
import type { Effect, GroupEvent } from '../../src/core/events.ts';
import { instant, leaseIdOf, type InstantMs, type LeaseId } from '../../src/core/words/ids.ts';
import { checkInvariants } from '../../src/core/invariants.ts';
import type { Outcome } from '../../src/core/words/outcome.ts';
import { recover } from '../../src/core/recover.ts';
import {
  COMES_BACK_MS,
  EXTENSIONS_MAX,
  LEASE_TTL_MS,
  type GroupSettings,
} from '../../src/core/words/settings.ts';
import { emptyState, type GroupState, type Lease } from '../../src/core/state.ts';
import { nextWakeAt, step } from '../../src/core/step.ts';
import type { Ticket } from '../../src/core/words/ticket.ts';
import { keptControls, SOMEBODY, someTicket, START } from '../support/core-builders.ts';
import { LeaseTable } from './lease-table.ts';

const SLICE_MS = 8_000;
const ATTACHMENTS_PER_INSTANCE = 1_000_000;

/** A call as its caller sees it. */
interface Call {
  readonly ticket: Ticket;
  readonly leaseId: LeaseId;
  /** `running`: at the upstream, whatever the group thinks of it. */
  phase: 'asking' | 'running' | 'over';
  /** The answer that it holds its lease by. */
  attachment: number;
  /** A strict holder stops here unless a renewal was acknowledged before. */
  fenceAt: number;
  /** Resets since a renewal was acknowledged. */
  resets: number;
}

/** Something that happens to the calls. `pick` chooses among those it can happen to. */
export type Mishap =
  | { readonly kind: 'arrive' | 'reset' | 'lossy_reset' | 'ask_all' | 'renew_all' }
  | { readonly kind: 'ask' | 'leave' | 'renew' | 'resume'; readonly pick: number }
  /** An operator takes the lease of a call away, which may not know yet that it has one. */
  | { readonly kind: 'revoke'; readonly of: 'asking' | 'running'; readonly pick: number }
  | {
      readonly kind: 'finish';
      readonly pick: number;
      readonly outcome: Outcome;
      /** Whether the group hears of it. */
      readonly isHeard: boolean;
    }
  /** The holder's process dies, and with it the call. */
  | { readonly kind: 'die'; readonly pick: number; readonly isHeard: boolean }
  /** The next grant never reaches its caller; the group may hear that the answer was dropped. */
  | { readonly kind: 'lose_next_grant'; readonly isHeard: boolean }
  /** A message that was delivered before is delivered again. */
  | { readonly kind: 'echo'; readonly pick: number }
  | { readonly kind: 'advance'; readonly ms: number }
  /** The group and all holders stand still for so long. The upstream does not. */
  | { readonly kind: 'freeze'; readonly ms: number };

/**
 * Callers, holders and an upstream that counts, around a group whose instances come and go. The group's
 * own counts are not looked at: what matters is how many calls run at the upstream at once.
 */
export class Fleet {
  now: InstantMs = START;
  /** Slots of calls that ran on after their lease had lapsed; a strict fleet has none. */
  lapsed = 0;
  peak = 0;
  readonly #isStrict: boolean;
  readonly #calls: Call[] = [];
  readonly #table = new LeaseTable();
  readonly #sent: GroupEvent[] = [];
  /** Renewals whose acknowledgement waits for a write, and when they were sent. */
  #unacknowledged = new Map<Call, number>();
  /** Until when the upstream counts calls that have ended. */
  readonly #lagging: { readonly until: number; readonly slots: number }[] = [];
  #lostGrant: { readonly isHeard: boolean } | null = null;
  #state: GroupState;
  #instances = 1;

  constructor(settings: GroupSettings, isStrict: boolean) {
    this.#isStrict = isStrict;
    this.#state = emptyState(settings, 1);
  }

  run(mishap: Mishap): void {
    switch (mishap.kind) {
      case 'arrive':
        return this.#arrive();
      case 'ask_all':
        return this.#in('asking').forEach((call) => this.#ask(call));
      case 'ask':
        return this.#with('asking', mishap.pick, (call) => this.#ask(call));
      case 'leave':
        return this.#with('asking', mishap.pick, (call) => {
          call.phase = 'over';
          this.#send({ kind: 'cancel', ticketId: call.ticket.id });
        });
      case 'renew_all':
        return this.#in('running').forEach((call) => this.#renew(call));
      case 'renew':
        return this.#with('running', mishap.pick, (call) => this.#renew(call));
      case 'resume':
        return this.#with('running', mishap.pick, (call) => this.#resume(call));
      case 'revoke':
        return this.#with(mishap.of, mishap.pick, ({ leaseId }) => {
          this.#send({ kind: 'revoke', leaseId });
        });
      case 'finish':
        return this.#with('running', mishap.pick, (call) => {
          call.phase = 'over';
          if (mishap.isHeard) this.#release(call, mishap.outcome);
        });
      case 'die':
        return this.#with('running', mishap.pick, (call) => {
          call.phase = 'over';
          const { leaseId, attachment } = call;
          if (!mishap.isHeard) return;
          // The disposal of an answer that a lost instance gave is heard by nobody.
          const isHolder = this.#state.leases.get(leaseId)?.attachment === attachment;
          if (isHolder) this.#lag(call, 'cancelled');
          this.#send({ kind: 'detach', leaseId, attachment });
        });
      case 'lose_next_grant':
        this.#lostGrant = mishap;
        return;
      case 'echo': {
        const echoed = this.#sent[this.#sent.length - 1 - (mishap.pick % this.#sent.length)];
        if (echoed !== undefined) this.#step(echoed);
        return;
      }
      case 'advance':
        return this.#advance(mishap.ms);
      case 'freeze':
        return this.#freeze(mishap.ms);
      case 'reset':
      case 'lossy_reset':
        return this.#reset(mishap.kind === 'lossy_reset');
    }
  }

  /**
   * Ends every call without a word, and replaces the instance again and again: nothing may be left once the
   * leases have been extended as often as they are at most.
   */
  abandon(): void {
    for (const call of this.#calls) call.phase = 'over';
    const lastMs = EXTENSIONS_MAX * LEASE_TTL_MS;
    for (let sinceMs = 0; sinceMs < lastMs; sinceMs += LEASE_TTL_MS / 5) {
      this.#reset(false);
      this.#advance(LEASE_TTL_MS / 5);
    }
    this.#table.write();
    assert.equal(this.#state.leases.size, 0);
    assert.deepEqual(this.#table.rows(), []);
  }

  /** Slots that the upstream counts. */
  #counted(): number {
    const running = this.#in('running').map(({ ticket }) => ticket.slots);
    const lagging = this.#lagging.filter(({ until }) => this.now < until);
    return [...running, ...lagging.map(({ slots }) => slots)].reduce((sum, each) => sum + each, 0);
  }

  #arrive(): void {
    const count = this.#calls.length;
    const ticket = someTicket(`t${count}`, this.now, {
      holder: { ...SOMEBODY, tenant: `tenant-${count % 3}`, agent: count % 2 > 0 ? 'run' : null },
      slots: count % 5 === 4 ? 2 : 1,
    });
    const leaseId = leaseIdOf(ticket.id, 1);
    const call: Call = { ticket, leaseId, phase: 'asking', attachment: 0, fenceAt: 0, resets: 0 };
    this.#calls.push(call);
    this.#ask(call);
  }

  #ask({ ticket, leaseId }: Call): void {
    this.#send({ kind: 'acquire', ticket, leaseId, sliceMs: SLICE_MS });
  }

  /** A renewal is acknowledged once what it changed is written. */
  #renew(call: Call): void {
    const { leaseId } = call;
    this.#send({ kind: 'renew', leaseId });
    const phase = this.#state.leases.get(leaseId)?.phase;
    if (phase === 'held') {
      this.#unacknowledged.set(call, this.now);
      this.#acknowledge();
    } else if (phase === 'revoking') {
      call.phase = 'over';
      this.#release(call, 'cancelled');
    } else {
      this.#resume(call);
    }
  }

  #release(call: Call, outcome: Outcome): void {
    const { leaseId } = call;
    this.#lag(call, outcome);
    this.#send({ kind: 'release', leaseId, outcome, settlement: null });
  }

  /** The upstream goes on counting a call for as long as the group's cool-down allows for. */
  #lag({ ticket }: Call, outcome: Outcome): void {
    const until = this.now + cooldownMs(this.#state, outcome, this.now);
    this.#lagging.push({ until, slots: ticket.slots });
  }

  #resume(call: Call): void {
    const { ticket, leaseId } = call;
    const { id, holder, lane, slots } = ticket;
    this.#send({ kind: 'resume', leaseId, ticketId: id, holder, lane, slots });
  }

  #reset(isLossy: boolean): void {
    // With the row of a cool-down its length is lost: the slot comes back when the lease lapses.
    if (isLossy && !this.#table.isWritten) this.#lagging.length = 0;
    if (isLossy) this.#table.lose();
    else this.#table.write();
    // What was not acknowledged by now never will be: its answer is lost with the instance.
    this.#unacknowledged.clear();
    const attachments = ATTACHMENTS_PER_INSTANCE * this.#instances++;
    const { settings } = this.#state;
    const recovered = recover(
      settings,
      this.#table.rows(),
      keptControls(this.#state),
      attachments,
      this.now,
    );
    this.#state = recovered.state;
    this.#table.note(recovered.effects, this.now);
    if (this.#isStrict) for (const call of this.#in('running')) this.#seekOut(call);
  }

  /**
   * A holder learns of a reset, because its parked renewal breaks. One that was not heard since the last one
   * has only so long to come back; and it takes its lease for lost when that has happened too often.
   */
  #seekOut(call: Call): void {
    call.resets += 1;
    if (call.resets > EXTENSIONS_MAX) call.phase = 'over';
    if (call.resets > 1) call.fenceAt = Math.min(call.fenceAt, this.now + COMES_BACK_MS);
  }

  /** Time passes: fences are met and the group is woken, each at its instant. */
  #advance(ms: number): void {
    const target = this.now + ms;
    for (;;) {
      const fences = this.#isStrict ? this.#in('running').map(({ fenceAt }) => fenceAt) : [];
      const at = Math.max(this.now, Math.min(nextWakeAt(this.#state, this.now), ...fences));
      if (at > target) return this.#moveTo(target);
      this.#moveTo(at);
      this.#step({ kind: 'tick' });
    }
  }

  /** A holder counts the time in which it could have renewed. */
  #freeze(ms: number): void {
    for (const call of this.#in('running')) call.fenceAt += ms;
    for (const [call, sentAt] of this.#unacknowledged) this.#unacknowledged.set(call, sentAt + ms);
    this.#moveTo(this.now + ms);
    this.#step({ kind: 'held_up', lostMs: ms });
  }

  #moveTo(at: number): void {
    this.now = instant(at);
    this.#table.advanceTo(at);
    this.#acknowledge();
    if (!this.#isStrict) return;
    for (const call of this.#in('running')) if (this.now >= call.fenceAt) call.phase = 'over';
  }

  #acknowledge(): void {
    if (!this.#table.isWritten) return;
    for (const [call, sentAt] of this.#unacknowledged) {
      call.fenceAt = sentAt + LEASE_TTL_MS;
      call.resets = 0;
    }
    this.#unacknowledged.clear();
  }

  #send(event: GroupEvent): void {
    this.#sent.push(event);
    this.#step(event);
  }

  #step(event: GroupEvent): void {
    const effects = step(this.#state, event, this.now);
    this.#table.note(effects, this.now);
    this.#acknowledge();
    assert.deepEqual(checkInvariants(this.#state, this.now), []);
    for (const effect of effects) this.#hear(effect);
    this.peak = Math.max(this.peak, this.#counted());
    if (event.kind === 'tick') assert.ok(nextWakeAt(this.#state, this.now) > this.now, 'it spins');
  }

  #hear(effect: Effect): void {
    if (effect.kind === 'ended' && !this.#isStrict) {
      const lapsed = this.#in('running').find(({ leaseId }) => leaseId === effect.leaseId);
      this.lapsed += lapsed?.ticket.slots ?? 0;
    }
    if (!('ticketId' in effect)) return;
    const call = this.#calls.find(({ ticket }) => ticket.id === effect.ticketId);
    if (call === undefined || call.phase === 'over') return;
    if (effect.kind === 'grant') this.#hearGrant(call, effect.lease);
    if (effect.kind === 'reject' || effect.kind === 'gone') call.phase = 'over';
  }

  #hearGrant(call: Call, { id, attachment }: Lease): void {
    const lost = this.#lostGrant;
    if (lost !== null && call.phase === 'asking') {
      this.#lostGrant = null;
      if (lost.isHeard) this.#send({ kind: 'detach', leaseId: id, attachment });
      return;
    }
    const older = call.phase === 'running' ? call.attachment : null;
    // Only the first answer begins the call; an echo's may be to an ask of long ago.
    if (older === null) call.fenceAt = this.now + LEASE_TTL_MS;
    call.phase = 'running';
    call.attachment = attachment;
    if (older !== null) this.#send({ kind: 'detach', leaseId: id, attachment: older });
  }

  #in(phase: Call['phase']): Call[] {
    return this.#calls.filter((call) => call.phase === phase);
  }

  #with(phase: Call['phase'], pick: number, work: (call: Call) => void): void {
    const calls = this.#in(phase);
    const call = calls[pick % calls.length];
    if (call !== undefined) work(call);
  }
}
