import assert from 'node:assert/strict';
import type { Effect, GroupEvent } from '../../../src/core/events.ts';
import { checkInvariants } from '../../../src/core/invariants.ts';
import { boundSlotsOf } from '../../../src/core/leases.ts';
import { isCovered, lostAt, type BoundRow } from '../../../src/core/parts/bound.ts';
import {
  notePace,
  type PrefetchedShare,
  type KeeperReport,
} from '../../../src/core/parts/prefetches.ts';
import type { GroupState, ActiveLease } from '../../../src/core/state.ts';
import { nextWakeAt } from '../../../src/core/step.ts';
import type { Claim } from '../../../src/core/orphaned.ts';
import {
  instant,
  type InstantMs,
  type LeaseId,
  type TicketId,
} from '../../../src/core/words/ids.ts';
import {
  PREFETCHED_PACE_MIN,
  PREFETCH_RENEW_EVERY_MS,
  RENEW_EVERY_MS,
} from '../../../src/core/words/settings.ts';
import { slotsHeld } from '../../../src/core/stats.ts';
import { takeWrite } from '../../../src/core/writes.ts';
import type { Clock } from '../simulator/clock.ts';
import { diskWriteOf, type FleetDisk, type DiskWrite } from './disk.ts';
import type { Rules } from './rules.ts';

/** How long what nobody waits for waits for company. */
const SOON_MS = 50;

/** An answer of an instance. One with a lease tells when it was decided. */
export type InstanceAnswer =
  | { readonly kind: 'lease'; readonly lease: HandedOut }
  | { readonly kind: 'gone'; readonly attachment: number }
  | { readonly kind: 'kept'; readonly attachment: number }
  | { readonly kind: 'ok' | 'revoking' | 'pending' | 'rejected' | 'released' }
  /** The connection broke: the instance is dead, or refuses. */
  | { readonly kind: 'broken' };

export interface HandedOut extends Pick<ActiveLease, 'attachment' | 'nested' | 'heirOf' | 'named'> {
  readonly decidedAt: InstantMs;
  readonly lent: PrefetchedShare | null;
}

export type Reply = (answer: InstanceAnswer) => void;

/** How long a write takes to land, and its writer to hear of it. `landMs` null: it never does. */
export interface WriteFate {
  readonly landMs: number | null;
  readonly hearMs: number;
}

export interface Surroundings {
  readonly clock: Clock;
  readonly disk: FleetDisk;
  readonly rules: Rules;
  readonly now: () => InstantMs;
  readonly nextWriteFate: () => WriteFate;
  /** Told after every step. */
  readonly onStep: (instance: Instance, event: GroupEvent) => void;
  readonly onDeath: (instance: Instance) => void;
  /** Told when a slot has changed hands unwritten. */
  readonly onPassed: () => void;
}

/** An answer that has yet to leave, and who waits for it. */
interface InstanceLeaving {
  readonly leave: () => void;
  readonly reply: Reply | undefined;
}

interface InstanceIssued {
  readonly write: DiskWrite;
  readonly answers: readonly InstanceLeaving[];
  hasLanded: boolean;
}

/** An instance of the group: the core, and the shell's turns, writes and answers around it. */
export class Instance {
  readonly number: number;
  readonly state: GroupState;
  readonly #around: Surroundings;
  isAlive = true;
  /** When the instance fell asleep. null if it is awake. */
  #asleepSince: InstantMs | null = null;
  /** The mark on disk: when a newer instance has read it, the one that this read. */
  markOnDisk: number;
  /** When the last write was issued. */
  #writtenAt = instant(-Infinity);
  #lastRow: BoundRow | null = null;
  /** Answers that have not left. */
  #answers: InstanceLeaving[] = [];
  /** One of them waits for a write. */
  #isAwaited = false;
  /** The bound is to be written at the end of the turn. */
  #isDue = false;
  #turnIsOpen = false;
  #inFlight: InstanceIssued[] = [];
  #landsFrom = 0;
  /** When what nobody waits for is written. */
  #flushAt = Infinity;
  #wakeAt = Infinity;
  /** Leases of which an answer has left. */
  readonly #out = new Set<LeaseId>();
  readonly #asks = new Map<TicketId, Reply>();
  readonly #renewals = new Map<LeaseId, { readonly dueAt: number; readonly reply: Reply }>();
  readonly #prefetchRenewals = new Map<
    LeaseId,
    { readonly dueAt: number; readonly reply: Reply }
  >();

  constructor(number: number, state: GroupState, around: Surroundings) {
    this.number = number;
    this.state = state;
    this.#around = around;
    this.markOnDisk = around.disk.mark;
    // Written at once where anything is held, as the shell does.
    if (slotsHeld(state) > 0) this.#flush([]);
    this.#arm();
  }

  acquire(event: Extract<GroupEvent, { kind: 'acquire' }>, reply: Reply): void {
    const { id, isolate } = event.ticket;
    // All isolates call often.
    for (let index = 0; isolate !== undefined && index < PREFETCHED_PACE_MIN; index += 1) {
      notePace(this.state.lending, isolate, this.#around.now());
    }
    const superseded = this.#asks.get(id);
    this.#asks.set(id, reply);
    this.apply(event);
    superseded?.({ kind: 'pending' });
  }

  resume(claim: Claim, reply: Reply): void {
    if (this.#around.rules.refuses(this.state, claim)) return reply({ kind: 'broken' });
    this.#asks.set(claim.ticketId, reply);
    this.apply({ kind: 'resume', claim });
  }

  renew(leaseId: LeaseId, reply: Reply): void {
    this.apply({ kind: 'renew', leaseId });
    const phase = this.state.leases.get(leaseId)?.phase ?? 'cooling';
    if (phase === 'cooling') return reply(this.#gone());
    if (phase === 'revoking') return reply({ kind: 'revoking' });
    this.#answerRenewal(leaseId, { kind: 'ok' });
    this.#renewals.set(leaseId, { dueAt: this.#around.now() + RENEW_EVERY_MS, reply });
    this.#arm();
  }

  /** As `Loans` does: the first answer of a keeper comes at once, those to its renewals are parked. */
  keepPrefetch(prefetchId: LeaseId, isNew: boolean, reported: KeeperReport, reply: Reply): void {
    this.apply({ kind: 'keep_loan', loanId: prefetchId, isNew, told: reported });
    const prefetch = this.state.lending.loans.get(prefetchId);
    if (prefetch === undefined) return reply(this.#gone());
    if (isNew) return this.#acknowledge({ kind: 'kept', attachment: prefetch.attachment }, reply);
    if (prefetch.isRecalled) return reply({ kind: 'revoking' });
    this.#answerRenewal(prefetchId, { kind: 'ok' });
    this.#prefetchRenewals.set(prefetchId, {
      dueAt: this.#around.now() + PREFETCH_RENEW_EVERY_MS,
      reply,
    });
    this.#arm();
  }

  apply(event: GroupEvent): void {
    if (!this.isAlive) return;
    const { rules, clock } = this.#around;
    const now = this.#around.now();
    if (rules.givesUp && now >= lostAt(this.state.bound)) {
      clock.after(0, () => {
        if (this.#around.now() >= lostAt(this.state.bound)) this.die();
      });
    }
    this.#answerDue();
    const effects = rules.step(this.state, event, now);
    const { violations } = this.state.totals;
    assert.deepEqual(checkInvariants(this.state, now), []);
    for (const [name, count] of Object.entries(violations)) assert.equal(count, 0, name);
    for (const effect of effects) this.#run(effect);
    this.#settle();
    this.#around.onStep(this, event);
    if (event.kind === 'tick' && rules.givesUp) {
      const isSpinning = nextWakeAt(this.state, now) <= now && now < lostAt(this.state.bound);
      assert.ok(!isSpinning, 'it spins');
    }
    this.#arm();
  }

  /** Ends the instance; `isSilent`: nobody hears that its connections broke. */
  die(isSilent = false): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    const waiting = [...this.#answers, ...this.#inFlight.flatMap(({ answers }) => answers)];
    const parked = [
      ...this.#asks.values(),
      ...[...this.#renewals.values(), ...this.#prefetchRenewals.values()].map(({ reply }) => reply),
      ...waiting.map(({ reply }) => reply),
    ];
    this.#asks.clear();
    this.#renewals.clear();
    this.#prefetchRenewals.clear();
    this.#answers = [];
    if (!isSilent) for (const reply of parked) reply?.({ kind: 'broken' });
    this.#around.onDeath(this);
  }

  get isAsleep(): boolean {
    return this.#asleepSince !== null;
  }

  /** Stops the timers of the instance. It keeps its state, and messages to its handles do not arrive. */
  sleep(): void {
    this.#asleepSince = this.#around.now();
  }

  /** Ends the sleep of the instance. It notices how long it slept, as the shell does if its timer is late. */
  awaken(): void {
    if (this.#asleepSince === null) return;
    const lostMs = this.#around.now() - this.#asleepSince;
    this.#asleepSince = null;
    this.#wakeAt = Infinity;
    this.apply({ kind: 'held_up', lostMs });
  }

  /** Lets the first `count` writes on their way land now: a newer instance is about to read the disk. */
  landFirst(count: number, hearMs: number): void {
    for (const issued of this.#inFlight.slice(0, count)) this.#land(issued, hearMs);
  }

  #run(effect: Effect): void {
    switch (effect.kind) {
      case 'write': {
        if (effect.isAhead) this.#isDue = true;
        else this.#flushAt = Math.min(this.#flushAt, this.#around.now() + SOON_MS);
        return;
      }
      case 'grant':
        return this.#grant(effect);
      case 'pending':
        return this.#take(effect.ticketId)?.({ kind: 'pending' });
      case 'reject':
      case 'declined':
      case 'moved':
      case 'unread':
        return this.#take(effect.ticketId)?.({ kind: 'rejected' });
      case 'gone':
        return this.#take(effect.ticketId)?.(this.#gone());
      case 'recalled':
        return this.#answerRenewal(effect.loanId, { kind: 'revoking' });
      case 'revoked':
        return this.#answerRenewal(effect.leaseId, { kind: 'revoking' });
      case 'ended':
        if (!this.state.leases.has(effect.leaseId)) this.#out.delete(effect.leaseId);
        return this.#answerRenewal(effect.leaseId, this.#gone());
    }
  }

  #grant({
    ticketId,
    lease,
    lent: prefetched,
    isCovered: isLeaving,
  }: Extract<Effect, { kind: 'grant' }>): void {
    const { attachment, nested, heirOf, named } = lease;
    // Where a call runs is decided with each, so nobody may start one unasked.
    const mayLend = this.state.settings.members.length === 0;
    assert.ok(mayLend || prefetched === undefined, 'a group of members lends a slot');
    if (isLeaving && heirOf.length > 0 && !lease.isOfEarlier) this.#around.onPassed();
    const reply = this.#take(ticketId);
    const decidedAt = this.#around.now();
    const handed = { attachment, nested, heirOf, named, lent: prefetched ?? null, decidedAt };
    const leave = (): void => {
      this.#out.add(lease.id);
      for (const slot of prefetched?.slots ?? []) this.#out.add(slot);
      this.#checkMark();
      reply?.({ kind: 'lease', lease: handed });
    };
    this.#answers.push({ leave, reply });
    this.#isAwaited ||= !isLeaving;
  }

  /** Checks that the disk covers everything that is handed out, now that an answer with a lease leaves. */
  #checkMark(): void {
    let held = this.state.unclaimed.slots;
    for (const lease of this.state.leases.values()) {
      if (this.#out.has(lease.id)) held += boundSlotsOf(lease);
    }
    for (const { slots } of this.state.lending.loans.values()) {
      for (const slot of slots) if (this.#out.has(slot)) held += 1;
    }
    assert.ok(held <= this.markOnDisk, `${held} slots are held above the mark ${this.markOnDisk}`);
  }

  #gone(): InstanceAnswer {
    return { kind: 'gone', attachment: this.state.nextAttachment };
  }

  #take(id: TicketId): Reply | undefined {
    const reply = this.#asks.get(id);
    this.#asks.delete(id);
    return reply;
  }

  #answerRenewal(id: LeaseId, answer: InstanceAnswer): void {
    const parked = this.#renewals.get(id) ?? this.#prefetchRenewals.get(id);
    this.#renewals.delete(id);
    this.#prefetchRenewals.delete(id);
    if (parked === undefined) return;
    if (answer.kind === 'ok') this.#acknowledge(answer, parked.reply);
    else parked.reply(answer);
  }

  /** Answers behind a write that is not too old. */
  #acknowledge(answer: InstanceAnswer, reply: Reply): void {
    const { rules, now } = this.#around;
    const arrivedAt = this.state.bound.confirmed?.at ?? instant(-Infinity);
    if (rules.mayAcknowledge(arrivedAt, now(), this.#writtenAt)) return reply(answer);
    this.#answers.push({ leave: () => reply(answer), reply });
    this.#isAwaited = true;
    this.#settle();
  }

  #answerDue(): void {
    for (const renewals of [this.#renewals, this.#prefetchRenewals]) {
      for (const [id, { dueAt }] of renewals) {
        if (dueAt > this.#around.now()) break;
        this.#answerRenewal(id, { kind: 'ok' });
      }
    }
  }

  /** Ends a step: answers now, unless others have left in this turn. */
  #settle(): void {
    if (this.#turnIsOpen || (this.#answers.length === 0 && !this.#isDue)) return;
    this.#openTurn(false);
  }

  #openTurn(isLater: boolean): void {
    this.#leave(isLater);
    this.#turnIsOpen = true;
    this.#around.clock.after(1, () => {
      if (!this.isAlive) return;
      this.#turnIsOpen = false;
      if (this.#answers.length > 0 || this.#isDue) this.#openTurn(true);
    });
  }

  /** Lets answers leave, behind a write where one of them waits for it, or what settled them is over. */
  #leave(isLater: boolean): void {
    if (isLater && this.#answers.length > 0 && !isCovered(this.state.bound, this.#around.now())) {
      this.#isAwaited = true;
    }
    const answers = this.#answers;
    this.#answers = [];
    if (this.#isAwaited || (isLater && this.#isDue)) this.#flush(answers);
    else for (const { leave } of answers) leave();
  }

  /** Writes; `answers` leave once that has landed. */
  #flush(answers: readonly InstanceLeaving[]): void {
    const { now, clock, disk, nextWriteFate } = this.#around;
    this.#flushAt = Infinity;
    this.#isAwaited = false;
    this.#isDue = false;
    this.#writtenAt = now();
    const issued: InstanceIssued = { write: this.#takeWrite(), answers, hasLanded: false };
    this.#inFlight.push(issued);
    const { landMs, hearMs } = nextWriteFate();
    this.#landsFrom = landMs === null ? Infinity : Math.max(this.#landsFrom, clock.now + landMs);
    if (this.#landsFrom === Infinity) return;
    clock.at(this.#landsFrom, () => {
      if (disk.owner === this.number) this.#land(issued, hearMs);
      else if (!issued.hasLanded) clock.after(hearMs, () => this.die());
    });
  }

  #takeWrite(): DiskWrite {
    const { rules, now } = this.#around;
    const taken = takeWrite(this.state, now());
    const bound = rules.row(taken.bound, this.#lastRow);
    this.#lastRow = bound;
    assert.ok(slotsHeld(this.state) <= bound.mark, 'a write does not cover what is held');
    return diskWriteOf({ ...taken, bound });
  }

  #land(issued: InstanceIssued, hearMs: number): void {
    if (issued.hasLanded) return;
    issued.hasLanded = true;
    this.#inFlight = this.#inFlight.filter((each) => each !== issued);
    const { disk, clock, now, rules } = this.#around;
    disk.land(issued.write, clock.now);
    this.markOnDisk = disk.mark;
    for (const { leave } of issued.answers) leave();
    clock.after(hearMs, () => {
      if (!this.isAlive) return;
      rules.confirm(this.state, issued.write.bound.seq, now());
      this.#arm();
    });
  }

  /** Sets the timer to what is due next. */
  #arm(): void {
    if (!this.isAlive) return;
    const { clock, now, rules } = this.#around;
    const [renewal] = this.#renewals.values();
    const [loanRenewal] = this.#prefetchRenewals.values();
    const renewAt = Math.min(renewal?.dueAt ?? Infinity, loanRenewal?.dueAt ?? Infinity);
    const wakeAt = nextWakeAt(this.state, now());
    // One that does not give up has nothing to do at the instant at which it should.
    const awakeAt = rules.givesUp ? wakeAt : Math.max(wakeAt, now() + 1_000);
    const dueAt = Math.min(awakeAt, this.#flushAt, renewAt);
    const at = clock.now + Math.max(0, dueAt - now());
    if (this.#wakeAt <= at) return;
    this.#wakeAt = at;
    clock.at(at, () => {
      if (this.#wakeAt !== at || !this.isAlive || this.isAsleep) return;
      this.#wakeAt = Infinity;
      this.#wake();
    });
  }

  #wake(): void {
    if (this.#flushAt <= this.#around.now()) this.#flush([]);
    this.apply({ kind: 'tick' });
  }
}
