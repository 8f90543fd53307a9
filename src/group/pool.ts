import { isOfProviderKey, isVerifiedLater } from '../contract/pool-name.ts';
import { countsUntil, isCovered, markOf } from '../core/parts/bound.ts';
import { rateRooms } from '../core/parts/rates.ts';
import { recover } from '../core/recover.ts';
import { endGapMs } from '../core/estimate.ts';
import { queueLength } from '../core/parts/queue.ts';
import type { GroupState } from '../core/state.ts';
import { wantsAnswer } from '../core/upstream-signals.ts';
import { instant, type InstantMs } from '../core/words/ids.ts';
import { checkMark, slotsHeld } from '../core/stats.ts';
import { PREFETCH_RENEW_EVERY_MS } from '../core/words/settings.ts';
import type { Env } from '../env.ts';
import { windowMsOf } from '../runtime/deployment.ts';
import { Timers } from '../runtime/async.ts';
import { AcquireCalls, HandOver, LeasesById } from './acquire-calls.ts';
import { Batch } from './batch.ts';
import { BoundStore, CostRows } from './bound-store.ts';
import {
  callLogOf,
  identityOf,
  settingsOf,
  warningBoundsOf,
  type PoolIdentity,
} from './definition.ts';
import { DirectoryLink } from './directory-link.ts';
import { EffectRunner, RowWriter, type GrantedReply } from './effects.ts';
import { Idleness, isInUse, Presence } from './idleness.ts';
import { firstAttachment, type VerificationHost } from './lease-handle.ts';
import { Leases, Prefetches, PoolVerification } from './leases.ts';
import { CostView, PoolView } from './observe/pool-view.ts';
import { LimitsSeen } from './observe/limit-status.ts';
import { Observation } from './observe/observation.ts';
import { Operator } from './operator.ts';
import { ParkedAcquires, Renewals, waitersMax } from './parked.ts';
import { Removal, GroupStore, Tables } from './store.ts';
import { Shell } from './shell.ts';

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
