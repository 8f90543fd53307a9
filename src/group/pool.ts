import {
  memberId,
  ticketOf,
  instant,
  type LeaseId,
  type MemberId,
  type TicketId,
  type InstantMs,
} from '../core/words/ids.ts';
import type { CallFilter, CorrectedSpend, SpendCorrection } from '../contract/rpc/group-rpc.ts';
import { allLedgers, type GroupState } from '../core/state.ts';
import { correctionsOf, spentIn, type NewCorrection, type Period } from '../core/parts/spend.ts';
import type { Holder, Lane } from '../core/words/ticket.ts';
import { isOfProviderKey, isVerifiedLater } from '../contract/pool-name.ts';
import { countsUntil, isCovered, markOf } from '../core/parts/bound.ts';
import { rateRooms } from '../core/parts/rates.ts';
import { recover } from '../core/recover.ts';
import { endGapMs } from '../core/estimate.ts';
import { queueLength } from '../core/parts/queue.ts';
import { wantsAnswer } from '../core/upstream-signals.ts';
import { checkMark, slotsHeld } from '../core/stats.ts';
import { PREFETCH_RENEW_EVERY_MS } from '../core/words/settings.ts';
import type { Env } from '../env.ts';
import { windowMsOf } from '../runtime/deployment.ts';
import { Timers } from '../runtime/async.ts';
import { CostView, PoolView } from './observe/pool-view.ts';
import { LimitsSeen } from './observe/limit-status.ts';
import { Observation } from './observe/observation.ts';
import { Batch } from './batch.ts';
import { DirectoryLink } from './directory-link.ts';
import { ParkedAcquires, Renewals, waitersMax } from './parked.ts';
import { Shell } from './shell.ts';
import { AcquireCalls, HandOver, LeasesById } from './acquire-calls.ts';
import { BoundStore, CostRows } from './bound-store.ts';
import {
  callLogOf,
  identityOf,
  settingsOf,
  warningBoundsOf,
  type PoolIdentity,
} from './definition.ts';
import { EffectRunner, RowWriter, type GrantedReply } from './effects.ts';
import { Idleness, isInUse, Presence } from './idleness.ts';
import { firstAttachment, type VerificationHost } from './lease-handle.ts';
import { Leases, Prefetches, PoolVerification } from './leases.ts';
import { Removal, GroupStore, Tables } from './store.ts';

/** A pool and its parts, and what operators do to it. */

/** The operators' side of a pool. An action is reported as done once no reset can undo it. */
class Operator {
  readonly #shell: Shell;
  readonly #batch: Batch;
  readonly #parked: ParkedAcquires;

  readonly #link: DirectoryLink;

  constructor(shell: Shell, batch: Batch, parked: ParkedAcquires, link: DirectoryLink) {
    this.#shell = shell;
    this.#batch = batch;
    this.#parked = parked;
    this.#link = link;
  }

  async revoke(id: LeaseId): Promise<boolean> {
    this.#shell.apply({ kind: 'revoke', leaseId: id });
    const isRevoking = this.#shell.state.leases.get(id)?.phase === 'revoking';
    await this.#batch.written();
    return isRevoking;
  }

  /** Revokes the slots of all matching calls. Returns their tickets. */
  async revokeAll(filter: CallFilter, isDry: boolean): Promise<string[]> {
    const matched = [...this.#shell.state.leases.values()]
      .filter(({ phase, holder }) => phase === 'held' && matches(holder, filter))
      .map(({ id }) => id);
    const tickets = matched.map(ticketOf);
    if (isDry) return tickets;
    for (const id of matched) this.#shell.apply({ kind: 'revoke', leaseId: id });
    await this.#batch.written();
    return tickets;
  }

  /** Removes all matching calls from the queue. Returns their tickets. */
  dismissAll(filter: CallFilter, isDry: boolean): string[] {
    const matched = [...this.#shell.state.queue.byTicket.values()]
      .filter(({ ticket }) => matches(ticket.holder, filter))
      .map(({ ticket }) => ticket.id);
    if (!isDry) for (const id of matched) this.dismiss(id);
    return matched;
  }

  /** Corrects the spend of a budget, once for each id. Returns null if there is no such member. */
  async correctSpend(wanted: NewCorrection): Promise<CorrectedSpend | null> {
    // A pool that rests or was never called may not know its members yet.
    if (wanted.member !== null) await this.#link.catchUp();
    this.#shell.apply({ kind: 'correct_spend', correction: wanted });
    await this.#batch.written();
    const correction = this.#correction(wanted.id);
    return correction === null ? null : this.#corrected(correction);
  }

  /** Undoes a correction. Returns null if there is none with that id. */
  async undoCorrection(id: string): Promise<CorrectedSpend | null> {
    const before = this.#correction(id);
    if (before === null) return null;
    this.#shell.apply({ kind: 'undo_correction', id });
    await this.#batch.written();
    return this.#corrected(this.#correction(id) ?? before);
  }

  /** Lists the corrections of the budgets of the group and its members, latest first. */
  corrections(): readonly SpendCorrection[] {
    return allLedgers(this.#shell.state)
      .flatMap(({ controls }) => correctionsOf(controls.spend))
      .toSorted((a, b) => b.at - a.at)
      .map((each) => structuredClone(each));
  }

  #correction(id: string): SpendCorrection | null {
    return this.corrections().find((each) => each.id === id) ?? null;
  }

  #corrected(correction: SpendCorrection): CorrectedSpend {
    const { state } = this.#shell;
    const { member } = correction;
    const { controls } = (member === null ? null : state.members.get(memberId(member))) ?? state;
    const now = this.#shell.now();
    const of = (period: Period): number => spentIn(controls.spend.total, period, now);
    return { correction, spent: { hour: of('hour'), day: of('day'), month: of('month') } };
  }

  async relearn(): Promise<void> {
    this.#shell.apply({ kind: 'relearn' });
    await this.#batch.written();
  }

  /** Ends the ejection of a member. Returns false if there is no such member. */
  async bringBack(member: MemberId): Promise<boolean> {
    // A pool that rests or was never called may not know its members yet, nor that the member is enabled.
    await this.#link.catchUp();
    this.#shell.apply({ kind: 'bring_back', member });
    await this.#batch.written();
    return this.#shell.state.settings.members.some(({ id }) => id === member);
  }

  /** Waiters are never stored, so this waits for no write. */
  promote(id: TicketId, lane: Lane | null, toFront: boolean): boolean {
    const waits = this.#waits(id);
    this.#shell.apply({ kind: 'promote', ticketId: id, lane, toFront });
    return waits;
  }

  dismiss(id: TicketId): boolean {
    if (!this.#waits(id)) return false;
    this.#parked.dismiss(id);
    this.#shell.apply({ kind: 'cancel', ticketId: id });
    return true;
  }

  #waits(id: TicketId): boolean {
    return this.#shell.state.queue.byTicket.has(id);
  }
}

function matches(holder: Holder, { tenant, agent, model, upstream }: CallFilter): boolean {
  return (
    (tenant === undefined || holder.tenant === tenant) &&
    (agent === undefined || holder.agent === agent) &&
    (model === undefined || holder.model === model) &&
    (upstream === undefined || holder.upstream === upstream)
  );
}

/**
 * One pool of slots: creates its parts and connects them. It is in its own object. An unverified pool of a self-hosted
 * Headgate shares an object with many others, its `host`.
 */
export class Pool {
  readonly shell: Shell;
  readonly link: DirectoryLink;
  readonly verification: PoolVerification;
  readonly leases: Leases;
  readonly loans: Prefetches;
  readonly acquires: AcquireCalls;
  readonly operator: Operator;
  readonly byId: LeasesById;
  readonly handOver: HandOver;
  readonly view: PoolView;
  readonly presence: Presence;
  readonly removal: Removal;
  /** Writes what waits for a later write. */
  readonly flush: () => void;
  /** Whether an earlier instance, whose window may still be open, has stored something. */
  readonly recallsWindow: boolean;

  constructor(ctx: DurableObjectState, env: Env, host: VerificationHost | null = null) {
    const timers = host?.timers ?? new Timers();
    const { after } = timers;
    const now = (): InstantMs => instant(timers.clock.now());
    const identity = identityOf(host?.name ?? ctx.id.name ?? '');
    const tables = tablesOf(ctx, identity, host);
    const store = new GroupStore(tables);
    const costRows = new CostRows(tables);
    const bounds = new BoundStore(tables, store, costRows, env.BOOT_ID ?? '');
    const waitUntil = (work: Promise<unknown>): void => ctx.waitUntil(work);
    const onChange = (moved: boolean): void => this.shell.reconfigure(moved);
    const isUnverified = host !== null;
    const link: DirectoryLink = new DirectoryLink({
      env,
      store,
      identity,
      now,
      after,
      waitUntil,
      onChange,
      isUnverified,
      said: () => JSON.stringify(this.view.presenceReport()),
      costs: () => costs.report(now()),
      idleMs: () => idleness.forMs(now()),
      isInWindow: () => presence.isInWindow,
      nextWindow: () => presence.nextWindow(),
      onListed: () => {
        presence.note(true);
        // The group may have been deleted before the directory listed the pool, and no other event may follow.
        if (link.isRetired && !isInUse(state)) link.listing.leave();
      },
      onOpened: (window) => presence.opened(window),
      onWatched: (watch) => observation.feed.begin(watch, now()),
    });
    const startedAt = now();
    const stored = bounds.load(startedAt, host?.held);
    const idleness = new Idleness(stored.lastUsedAt, startedAt);
    const waiters = waitersMax(env);
    const settings = settingsOf(link.definition, waiters, identity.partition);
    const first = firstAttachment(startedAt);
    // If an operator has set the limit, a reset must not grant it twice, so every grant is covered on disk.
    const isStored = tables.isOpen || (host === null && !isOfProviderKey(identity));
    const state = recover(settings, stored, first, isStored, startedAt);
    const costs = new CostView(state.controls, costRows);
    const observation = new Observation(
      state,
      {
        env,
        ctx,
        after,
        tables,
        store,
        identity,
        bounds: () => warningBoundsOf(link.definition),
        heldBefore: stored.heldBefore,
        writtenBefore: stored.lastUsedAt,
        minuteBefore: stored.minute,
        callsBefore: stored.calls,
        log: () => callLogOf(link.definition),
        report: (isDetailed) => this.view.report(isDetailed),
      },
      startedAt,
    );
    const abort = (reason: string): void => ctx.abort(reason);
    const sync = (): Promise<void> => ctx.storage.sync();
    const onConfirmed = (): void => this.shell.arm();
    const setAlarm = (at: number | null): void =>
      // Alarms use the wall clock.
      waitUntil(
        at === null ? ctx.storage.deleteAlarm() : ctx.storage.setAlarm(at - timers.clock.aheadMs),
      );
    const removal = new Removal({
      state,
      store,
      isRemovable: host === null && isVerifiedLater(identity) && !isOfProviderKey(identity),
      hadSuccess: () => link.listing.hadSuccess,
      now,
      idleMs: () => idleness.forMs(now()),
      setAlarm,
      deleteAll: () => ctx.storage.deleteAll(),
    });
    const onWritten = (): void => removal.noteWritten();
    const reported = { onConfirmed, onWritten, abort };
    const writer = { state, store, bounds, observation, now, after, sync, ...reported };
    const rows = new RowWriter(writer);
    // Hundreds of pools may share an object. The runtime fires their timers one by one and allows 10,000.
    const batch = new Batch(
      (isBound) => rows.write(isBound),
      () => isCovered(state.bound, now()),
      host === null,
      after,
    );
    const parked = new ParkedAcquires(
      () => link.definition.version,
      () => ratesNow(state, now()),
      () => state.nextAttachment,
      waiters,
    );
    const renewals = new Renewals();
    const prefetchRenewals = new Renewals(PREFETCH_RENEW_EVERY_MS);
    const effects = new EffectRunner({
      batch,
      acquires: parked,
      renewals,
      loanRenewals: prefetchRenewals,
      handle: (id, attachment) => this.leases.handle(id, attachment),
      onLeaving: () => checkMark(state, markOf(state.bound)),
      countsUntil: ({ until }) => countsUntil(state.bound, until),
      grantFields: (lease) => ({
        configVersion: link.definition.version,
        ...(wantsAnswer(state, lease, now()) ? { wantsServed: true } : {}),
        ...(queueLength(state.queue) > 0 ? { hasWaiters: true } : {}),
        ...(lease.waitsElsewhere ? { endGapMs: endGapMs(state) } : {}),
        ...ratesNow(state, now()),
      }),
    });
    const presence: Presence = new Presence({
      now,
      after,
      isInUse: () => isInUse(state),
      idleMs: () => idleness.forMs(now()),
      isKept: () => link.isKept,
      windowMs: windowMsOf(env),
      setAlarm,
      wake: () => link.wake(),
      rest: (window) => link.rest(window),
      waitUntil,
    });
    const onEvent = (): void => host?.onEvent();
    const parkedHere = { renewals, loanRenewals: prefetchRenewals };
    const turned = { timers, effects, batch, rows, ...parkedHere, observation, presence };
    const shell = new Shell(state, { ...turned, idleness, link, waitersMax: waiters, onEvent });
    const verification = new PoolVerification({ tables, rows, link, host });
    const limitsSeen = new LimitsSeen(store);
    const leases = new Leases({ shell, batch, parked, renewals, verification, host, limitsSeen });
    const handOver = new HandOver({ shell, link, batch, observation, verification, leases });
    const endedBefore = new Set(stored.bound?.ended);
    const acquires = new AcquireCalls({
      shell,
      link,
      parked,
      handOver,
      endedBefore,
    });
    this.flush = () => rows.flush();
    this.shell = shell;
    this.link = link;
    this.verification = verification;
    this.leases = leases;
    this.loans = new Prefetches({ shell, renewals: prefetchRenewals, leases });
    this.handOver = handOver;
    this.acquires = acquires;
    this.byId = new LeasesById({ shell, parked, acquires, leases, verification });
    this.presence = presence;
    this.removal = removal;
    // Alarms other than that of a window are for the removal.
    this.recallsWindow = tables.isOpen && stored.isOfProcess && link.isKept;
    this.operator = new Operator(shell, batch, parked, link);
    this.view = new PoolView({
      shell,
      identity,
      link,
      idleness,
      observation,
      acquires,
      costs,
      limitsSeen,
    });
    idleness.note(state, startedAt);
    // Written at once: slots granted before count from now on, and an older instance cannot write any more.
    if (slotsHeld(state) > 0) rows.write(true);
    shell.arm();
  }
}

function tablesOf(
  { storage }: DurableObjectState,
  identity: PoolIdentity,
  host: VerificationHost | null,
): Tables {
  if (host !== null) return new Tables(storage.sql, false);
  return isVerifiedLater(identity)
    ? Tables.ofUnverified(storage.sql)
    : new Tables(storage.sql, true);
}

/** Returns the remaining room of the group's rate limits, or nothing if it has none. */
function ratesNow({ controls, settings }: GroupState, now: InstantMs): Pick<GrantedReply, 'rates'> {
  const rates = rateRooms(controls.rates, settings.rates, now);
  return rates.length === 0 ? {} : { rates };
}
