import type { GroupConfig } from '../contract/config/config.ts';
import type { Env } from '../env.ts';
import { SteadyClock } from '../runtime/steady-clock.ts';
import {
  POOL_IDLE_MS,
  type AcquireAnswer,
  type AcquireRequest,
  type GroupDefinition,
  type GroupRpc,
  type HandedPool,
  type LeaseRpc,
  type RenewAnswer,
  type ResumeAnswer,
  type ResumeRequest,
} from '../contract/rpc/group-rpc.ts';
import { isProvedLater } from '../contract/pool-name.ts';
import { blockOf, isStopped } from '../core/capacity.ts';
import type { GroupEvent } from '../core/events.ts';
import { instant, leaseId, leaseIdOf, ticketId, type InstantMs } from '../core/words/ids.ts';
import type { LeaseId, TicketId } from '../core/words/ids.ts';
import type { Outcome } from '../core/words/outcome.ts';
import { recover, rowOf } from '../core/recover.ts';
import type { GroupState } from '../core/state.ts';
import { queueLength } from '../core/parts/queue.ts';
import { nextWakeAt, step } from '../core/step.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import type { Lane } from '../core/words/ticket.ts';
import { wantsServed } from '../core/upstream-signals.ts';
import type { Settlement } from '../core/words/usage.ts';
import { standing } from '../core/enter.ts';
import { ParkedAcquires } from './parked-acquires.ts';
import { Batch, type Writes } from './batch.ts';
import { identityOf, settingsOf, warningBoundsOf, type PoolIdentity } from './definition.ts';
import { ControlsRows } from './controls-rows.ts';
import { DirectoryLink } from './directory-link.ts';
import { Idleness } from './idleness.ts';
import { LeaseHandle, type LeaseKeeper } from './lease-handle.ts';
import { EffectRunner } from './effects.ts';
import { Observation } from './observe/observation.ts';
import { PauseWaiters } from './pause-waiters.ts';
import { READ, ReadableGroup, reportOf, type Reading } from './readable-group.ts';
import { Renewals } from './renewals.ts';
import { holderOf, ticketFrom } from './requests.ts';
import type { Seat } from './seat.ts';
import { GroupStore } from './store.ts';
import { Tables } from './tables.ts';
import { WakeTimer } from './wake-timer.ts';

/** While there are leases the object wakes at least this often, so that it notices when it is held up. */
const PULSE_MS = 5_000;

/** A timer that is later than this was held up: the process was frozen, or the wall clock set forward. */
const HELD_UP_MS = 5_000;

/** Attachments of a later instance are larger than all of an earlier one, at this many a millisecond. */
const ATTACHMENTS_PER_MS = 1_000;

/** Symbols, as for `READ`: only the object that a pool sits in may ask for these. */
export const USE = Symbol('use');
export const HAND_OVER = Symbol('hand over');
export const GO_ON = Symbol('go on');
export const LET_GO = Symbol('let go');

/**
 * One pool of slots. It decides nothing itself: calls become events of the core, the core's effects
 * become rows and answers.
 */
export class GroupObject extends ReadableGroup implements GroupRpc {
  readonly #identity: PoolIdentity;
  /** Null: it has an object of its own. */
  readonly #seat: Seat | null;
  readonly #tables: Tables;
  readonly #store: GroupStore;
  readonly #controls: ControlsRows;
  readonly #link: DirectoryLink;
  readonly #state: GroupState;
  readonly #effects: EffectRunner;
  readonly #renewals = new Renewals();
  readonly #pauseWaiters = new PauseWaiters();
  readonly #acquires: ParkedAcquires;
  readonly #keeper: LeaseKeeper;
  readonly #idleness: Idleness;
  readonly #batch: Batch;
  readonly #watch: Observation;
  #isHandedOver = false;
  #passedUnlimited = 0;
  readonly #clock = new SteadyClock();
  readonly #timer = new WakeTimer(this.#clock, () => this.#apply({ kind: 'tick' }));

  constructor(ctx: DurableObjectState, env: Env, seat: Seat | null = null) {
    super(ctx, env);
    this.#seat = seat;
    // Where hundreds of pools share an object, the runtime fires their timers one by one, and allows 10,000.
    this.#batch = new Batch((writes) => this.#write(writes), seat === null);
    this.#identity = identityOf(seat?.name ?? ctx.id.name ?? '');
    this.#tables = tablesOf(ctx, this.#identity, seat);
    this.#store = new GroupStore(this.#tables, env.BOOT_ID ?? '');
    this.#controls = new ControlsRows(this.#store);
    this.#link = new DirectoryLink(
      env,
      this.#store,
      this.#identity,
      (work) => ctx.waitUntil(work),
      (moved) => this.#definitionChanged(moved),
    );
    this.#acquires = new ParkedAcquires(() => this.#link.definition.version);
    this.#keeper = {
      renew: (id, status) => this.#renew(id, status),
      report: (id, signal, isRepeat) => this.#report(id, signal, isRepeat),
      release: (id, outcome, status, settlement) => this.#release(id, outcome, status, settlement),
      confirm: (id) => this.#apply({ kind: 'confirm', leaseId: id }),
      detach: (id, attachment) => this.#apply({ kind: 'detach', leaseId: id, attachment }),
    };
    this.#effects = new EffectRunner({
      batch: this.#batch,
      acquires: this.#acquires,
      renewals: this.#renewals,
      keeper: seat?.keeperFor(this.#keeper) ?? this.#keeper,
      grantFields: () => ({
        configVersion: this.#link.definition.version,
        ...(wantsServed(this.#state, this.#now()) ? { wantsServed: true } : {}),
      }),
    });
    const now = this.#now();
    this.#idleness = new Idleness(this.#store, now);
    const loaded = this.#store.loadLeases();
    const recovered = recover(
      settingsOf(this.#link.definition),
      loaded.leases,
      this.#controls.load(now),
      now * ATTACHMENTS_PER_MS,
      now,
    );
    this.#state = recovered.state;
    this.#watch = new Observation(
      this.#state,
      {
        env,
        ctx,
        tables: this.#tables,
        store: this.#store,
        identity: this.#identity,
        bounds: () => warningBoundsOf(this.#link.definition),
        leasesBefore: loaded.heldBefore,
        report: (isDetailed) => reportOf(this[READ](), isDetailed),
      },
      now,
    );
    this.#idleness.note(this.#isInUse(), now);
    this.#effects.run(recovered.effects);
  }

  async acquire(request: AcquireRequest): Promise<AcquireAnswer> {
    if (request.configVersion > this.#link.definition.version) await this.#link.catchUp();
    this.#link.assume(request.assumed);
    this.#passedUnlimited += request.passedUnlimited;
    if (this.#link.isRetired || this.#isHandedOver) return this.#acquires.moved();
    const id = ticketId(request.ticketId);
    if (this.#state.queue.byTicket.has(id)) this.#link.hear();
    const superseded = this.#acquires.current(id);
    const answer = this.#park(id, {
      kind: 'acquire',
      leaseId: leaseIdOf(id, request.attempt),
      sliceMs: request.sliceMs,
      ticket: ticketFrom(request, this.#now()),
    });
    superseded?.(this.#acquires.pending(standing(this.#state, id, this.#now())));
    return (await answer) as AcquireAnswer;
  }

  async resume(request: ResumeRequest): Promise<ResumeAnswer> {
    this.#link.assume(request.assumed);
    const id = ticketId(request.ticketId);
    const superseded = this.#acquires.current(id);
    const answer = this.#park(id, {
      kind: 'resume',
      leaseId: leaseId(request.leaseId),
      ticketId: id,
      holder: holderOf(request),
      lane: request.lane ?? 'normal',
      slots: request.slots ?? 1,
      othersMayFollow: !this.#tables.isOpen,
      ...(request.attachment === undefined ? {} : { attachment: request.attachment }),
    });
    superseded?.({ kind: 'gone' });
    return (await answer) as ResumeAnswer;
  }

  // oxlint-disable-next-line require-await -- the contract is a promise; a throw must become a rejection
  async cancel(ticket: string): Promise<void> {
    this.#apply({ kind: 'cancel', ticketId: ticketId(ticket) });
  }

  // oxlint-disable-next-line require-await -- as above
  async release(
    id: string,
    outcome: Outcome,
    status: number | null,
    settlement?: Settlement,
  ): Promise<void> {
    this.#release(leaseId(id), outcome, status, settlement);
  }

  // oxlint-disable-next-line require-await -- as above
  async report(id: string, signal: UpstreamSignal, isRepeat: boolean): Promise<void> {
    this.#report(leaseId(id), signal, isRepeat);
  }

  /** As with `relearn`: the operator hears that it is done once no reset can undo it. */
  async revoke(id: string): Promise<boolean> {
    this.#apply({ kind: 'revoke', leaseId: leaseId(id) });
    const isRevoking = this.#state.leases.get(leaseId(id))?.phase === 'revoking';
    await this.#batch.written();
    return isRevoking;
  }

  async relearn(): Promise<void> {
    this.#apply({ kind: 'relearn' });
    await this.#batch.written();
  }

  // oxlint-disable-next-line require-await -- as above
  async promote(ticket: string, lane: Lane | null, toFront: boolean): Promise<boolean> {
    const id = ticketId(ticket);
    const waits = this.#state.queue.byTicket.has(id);
    this.#apply({ kind: 'promote', ticketId: id, lane, toFront });
    return waits;
  }

  // oxlint-disable-next-line require-await -- as above
  async dismiss(ticket: string): Promise<boolean> {
    const id = ticketId(ticket);
    if (!this.#state.queue.byTicket.has(id)) return false;
    this.#acquires.dismiss(id);
    this.#apply({ kind: 'cancel', ticketId: id });
    return true;
  }

  async forget(jurisdiction: GroupConfig['jurisdiction']): Promise<boolean> {
    this.#apply({ kind: 'tick' });
    if (this.#idleness.forMs(this.#now()) < POOL_IDLE_MS) return false;
    await this.#link.forget(jurisdiction);
    return true;
  }

  opened(sliceMs: number): Promise<boolean> {
    const now = this.#now();
    if (!isStopped(this.#state, now)) return Promise.resolve(true);
    this.#link.hear();
    const opened = this.#pauseWaiters.park(sliceMs, now);
    this.#arm();
    return opened;
  }

  // oxlint-disable-next-line require-await -- as above
  async reconfigure(pushed: GroupDefinition): Promise<void> {
    this.#link.adopt(pushed);
  }

  // oxlint-disable-next-line require-await -- as above
  async isProved(): Promise<boolean> {
    return this.#tables.isOpen;
  }

  async takeOver({ assumed, ...handed }: HandedPool): Promise<LeaseRpc[]> {
    this.#link.assume(assumed);
    const isNew = !this.#tables.isOpen;
    this.#prove();
    const firstAttachment = this.#now() * ATTACHMENTS_PER_MS;
    this.#apply({ kind: 'take_over', handed, isNew, firstAttachment });
    const { promise: written, resolve } = Promise.withResolvers<void>();
    this.#batch.afterWrite(resolve);
    this.#batch.settle();
    await written;
    return handed.leases.map(({ id }) => {
      const attachment = this.#state.leases.get(id)?.attachment ?? 0;
      return new LeaseHandle(this.#keeper, id, attachment);
    });
  }

  /** Whether somebody holds or awaits something, or it is worth remembering for a while. */
  [USE](): 'in_use' | 'pause' | 'nothing' {
    if (this.#isInUse()) return 'in_use';
    return isStopped(this.#state, this.#now()) ? 'pause' : 'nothing';
  }

  /** What the pool's own object needs to go on with it. Who waits, and who comes now, is sent there. */
  [HAND_OVER](): HandedPool {
    this.#isHandedOver = true;
    this.#apply({ kind: 'move' });
    const { leases, controls, totals } = this.#state;
    const { assumed } = this.#link.definition;
    return { leases: [...leases.values()].map(rowOf), controls, totals, assumed };
  }

  /** The pool's own object could not take over. */
  [GO_ON](): void {
    this.#isHandedOver = false;
  }

  /** The pool's own object has taken over: holders are sent there, and nothing is left here. */
  [LET_GO](): void {
    for (const id of this.#state.leases.keys()) {
      this.#apply({ kind: 'release', leaseId: id, outcome: 'unused', settlement: null });
    }
  }

  [READ](): Reading {
    this.#apply({ kind: 'tick' });
    const now = this.#now();
    return {
      now,
      state: this.#state,
      identity: this.#identity,
      definition: this.#link.definition,
      watch: this.#watch,
      passedUnlimited: this.#passedUnlimited,
      idleMs: this.#idleness.forMs(now),
    };
  }

  /** Parks the caller until the core has an answer for its ticket. */
  #park(id: TicketId, event: GroupEvent): Promise<AcquireAnswer | ResumeAnswer> {
    return new Promise((resolve) => {
      this.#acquires.park(id, resolve);
      this.#apply(event);
    });
  }

  #release(
    id: LeaseId,
    outcome: Outcome,
    status: number | null,
    settlement: Settlement | null = null,
  ): void {
    this.#observe(status);
    this.#apply({ kind: 'release', leaseId: id, outcome, settlement, status });
  }

  /** The first 2xx proves the pool: it is stored from now on, and listed. */
  #observe(status: number | null): void {
    if (status === null || status < 200 || status > 299) return;
    if (this.#seat === null) this.#prove();
    else this.#seat.onProved();
  }

  #prove(): void {
    if (!this.#tables.isOpen) this.#tryToWrite(() => this.#store.open());
    this.#link.proved();
  }

  #report(id: LeaseId, signal: UpstreamSignal, isRepeat: boolean): void {
    this.#apply({ kind: 'report', leaseId: id, signal, isRepeat });
  }

  async #renew(id: LeaseId, status: number | null): Promise<RenewAnswer> {
    this.#observe(status);
    this.#apply({ kind: 'renew', leaseId: id });
    const phase = this.#state.leases.get(id)?.phase ?? 'cooling';
    if (phase === 'cooling') return 'gone';
    if (phase === 'revoking') return 'revoking';
    const parked = this.#renewals.park(id, this.#now());
    this.#arm();
    const answer = await parked;
    if (answer === 'ok') this.#store.heartbeat(this.#now());
    return answer;
  }

  #definitionChanged(moved: boolean): void {
    this.#apply({ kind: 'reconfigure', settings: settingsOf(this.#link.definition) });
    if (moved) this.#apply({ kind: 'move' });
  }

  #apply(event: GroupEvent): void {
    const now = this.#now();
    this.#watch.before(now);
    this.#answerDue(now);
    this.#effects.run(step(this.#state, event, now));
    if (this.#watch.after(event, now)) this.#batch.soon();
    this.#idleness.note(this.#isInUse(), now);
    if (!this.#isInUse()) this.#link.leave();
    if (this.#pauseWaiters.isAwaited && !isStopped(this.#state, now)) this.#pauseWaiters.open();
    this.#arm();
    this.#seat?.onEvent();
  }

  #isInUse(): boolean {
    return this.#state.leases.size + queueLength(this.#state.queue) > 0;
  }

  #write(writes: Writes): void {
    this.#tryToWrite(() => {
      this.#store.write(writes);
      if (writes.controls !== null) {
        this.#controls.write(writes.controls, this.#isInUse(), this.#now());
      }
      this.#watch.write(this.#now());
    });
  }

  /** An instance that cannot write is not the current one, or is lost: nothing of it may stay. */
  #tryToWrite(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.ctx.abort(`the lease rows cannot be written: ${String(error)}`);
    }
  }

  /** Every turn does what the timer is late with, before anything that is due by the clock alone ends. */
  #answerDue(now: InstantMs): void {
    const lateMs = this.#timer.takeOver();
    if (lateMs === null) return;
    if (lateMs > HELD_UP_MS) {
      this.#effects.run(step(this.#state, { kind: 'held_up', lostMs: lateMs }, now));
    }
    this.#renewals.answerDue(now);
    this.#pauseWaiters.answerDue(now);
  }

  #arm(): void {
    const now = this.#now();
    // Whoever holds nothing and waits for the end of a pause is told when it is over.
    const opensAt = this.#pauseWaiters.isAwaited ? blockOf(this.#state, now)?.until : undefined;
    const dueAt = Math.min(nextWakeAt(this.#state, now), opensAt ?? Infinity);
    const parkedUntil = Math.min(this.#renewals.nextDueAt(), this.#pauseWaiters.nextDueAt());
    const pulseAt = this.#state.leases.size > 0 ? now + PULSE_MS : Infinity;
    this.#timer.arm(Math.min(dueAt, parkedUntil, pulseAt));
  }

  #now(): InstantMs {
    return instant(this.#clock.now());
  }
}

function tablesOf(
  { storage }: DurableObjectState,
  identity: PoolIdentity,
  seat: Seat | null,
): Tables {
  if (seat !== null) return new Tables(storage.sql, false);
  return isProvedLater(identity) ? Tables.ofUnproved(storage.sql) : new Tables(storage.sql, true);
}
