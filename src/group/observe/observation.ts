import { directoryOf, feedOf, type Env } from '../../env.ts';
import { METRICS_ONLY } from '../../contract/gauges.ts';
import type { PoolReport, PoolMetrics } from '../../contract/rpc/feed-rpc.ts';
import type { CallQuery, CallsFound, StoredCall } from '../../contract/calls.ts';
import type { CallLogConfig } from '../../contract/config/group.ts';
import type { CallCounts, HistoryPoint, PoolHistory } from '../../contract/history.ts';
import type { Warning } from '../../contract/attention.ts';
import type { LastHour, PoolStatus } from '../../contract/status.ts';
import type { GroupEvent } from '../../core/events.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import type { HoldKind } from '../../core/words/ticket.ts';
import { markOf } from '../../core/parts/bound.ts';
import type { GroupState } from '../../core/state.ts';
import type { PoolIdentity, WarningBounds } from '../definition.ts';
import { isInUse } from '../idleness.ts';
import type { IdleRow } from '../bound-store.ts';
import { CallLog } from './call-log.ts';
import { CallRows, HistoryRows } from './rows.ts';
import { counterReader } from './limit-status.ts';
import { FeedLink } from './feed-link.ts';
import { History, waitQuantiles } from './history.ts';
import { Markers } from './markers.ts';
import { queuedByScope } from './scope-status.ts';
import type { GroupStore, Tables } from '../store.ts';
import { ViolationLog } from './lesson-warnings.ts';
import { Warnings } from './warnings.ts';
import type { Schedule } from '../../runtime/async.ts';
import { deliverWarning, webhookDependencies } from '../../runtime/webhook.ts';

const readCounters = counterReader(METRICS_ONLY);

interface WatchedPool {
  readonly env: Env;
  readonly ctx: DurableObjectState;
  readonly after: Schedule;
  readonly tables: Tables;
  readonly store: GroupStore;
  readonly identity: PoolIdentity;
  readonly bounds: () => WarningBounds;
  /** Slots that were held when the previous instance last wrote. */
  readonly heldBefore: number;
  /** When that was, or null if unknown. */
  readonly writtenBefore: InstantMs | null;
  /** The minute in which the previous instance fell idle, or null. */
  readonly minuteBefore: HistoryPoint | null;
  /** Lines of the call log that it left in no row. */
  readonly callsBefore: readonly StoredCall[];
  readonly log: () => CallLogConfig;
  readonly report: (isDetailed: boolean) => PoolReport;
}

/** Observes a pool: its history, warnings and counters. It makes no decisions. */
export class Observation {
  readonly feed: FeedLink;
  readonly #state: GroupState;
  readonly #history: History;
  readonly #calls: CallLog;
  readonly #warnings: Warnings;
  readonly #markers: Markers;
  readonly #violations: ViolationLog;
  readonly #bounds: () => WarningBounds;
  readonly #tables: Tables;

  constructor(
    state: GroupState,
    {
      env,
      ctx,
      after,
      tables,
      store,
      identity,
      bounds,
      heldBefore,
      writtenBefore,
      minuteBefore,
      callsBefore,
      log,
      report,
    }: WatchedPool,
    now: InstantMs,
  ) {
    this.#state = state;
    this.#bounds = bounds;
    this.#tables = tables;
    this.#violations = new ViolationLog(identity, (violations, at) =>
      this.#warnings.noteViolations(violations, at),
    );
    this.#markers = new Markers(tables, state);
    this.#history = new History(new HistoryRows(tables), minuteBefore, now);
    if (heldBefore > 0) {
      const lost = writtenBefore === null ? null : this.#history.lostSince(writtenBefore, now);
      this.#markers.noteReset(heldBefore, lost, now);
    }
    this.#calls = new CallLog(new CallRows(tables), log, callsBefore);
    this.feed = new FeedLink(store, report, {
      hub: () => feedOf(env),
      waitUntil: (work) => ctx.waitUntil(work),
      after,
    });
    this.#warnings = new Warnings(store, identity, (warning, isNew) => {
      this.feed.warn(warning);
      // A lost warning is still in the pool's own list.
      ctx.waitUntil(
        directoryOf(env)
          .noteWarning(warning)
          .catch(() => {}),
      );
      if (isNew) ctx.waitUntil(deliverWarning(warning, webhookDependencies(env, after)));
    });
    this.#warnings.begin(state);
    this.#history.note(state, now);
  }

  before(now: InstantMs): void {
    const minute = this.#history.turn(this.#state, now);
    if (minute !== null) this.#calls.endMinute();
    if (minute !== null) this.#warnings.noteMinute(this.#state, minute, this.#bounds(), now);
  }

  noteStep(now: InstantMs): void {
    this.#history.noteStep(this.#state);
    this.#calls.note(this.#state.decisions, now);
  }

  /**
   * Records an applied event. Returns what to write soon: `bound` for the bound and everything else, `rest` for
   * everything else, or null.
   */
  after(event: GroupEvent, now: InstantMs): 'bound' | 'rest' | null {
    this.#history.note(this.#state, now);
    this.#markers.note(this.#state, event, now);
    this.#warnings.note(this.#state, this.#bounds(), now);
    this.#violations.note(this.#state.totals.violations, now);
    this.feed.note(now);
    if (!this.#tables.isOpen) return null;
    const isHistoryDue = this.#history.isDue(isCarried(this.#state), now);
    // A pool without slots in use writes one row, which also contains the lines and the spent budget.
    const isMore = this.#calls.hasUnkept || this.#state.budgetStop !== null;
    if (isHistoryDue && isMore && !isCarried(this.#state)) return 'bound';
    return isHistoryDue || this.#markers.isDue || this.#calls.isDue ? 'rest' : null;
  }

  /** Writes what is due, in the transaction of another write. */
  write(now: InstantMs): void {
    if (!this.#tables.isOpen) return;
    this.#history.write(this.#state, isCarried(this.#state), now);
    this.#markers.write();
    this.#calls.write();
  }

  /** Returns the data to store with the bound of a pool that falls idle. */
  takeAtRest(now: InstantMs): IdleRow {
    const minute = this.#history.takeOpen(this.#state, now);
    const calls = this.#calls.carry();
    const { budgetStop } = this.#state;
    return {
      ...(minute !== null && { minute }),
      ...(calls.length > 0 && { calls }),
      ...(budgetStop !== null && { budgetStop }),
    };
  }

  /** Lines of the call log that are in no row. A pool that is not stored has no others. */
  get callLines(): readonly StoredCall[] {
    return this.#calls.lines;
  }

  /** Adds lines of the call log from before the pool was stored. */
  adoptCalls(lines: readonly StoredCall[]): void {
    this.#calls.adopt(lines);
  }

  /** Writes everything that is not on disk. No further event follows. */
  flush(now: InstantMs): void {
    if (!this.#tables.isOpen) return;
    this.#history.flush(this.#state, now);
    this.#markers.write();
    this.#calls.write(true);
  }

  history(fromMs: number, toMs: number, stepMs: number, now: InstantMs): PoolHistory {
    const points = this.#history.read(this.#state, fromMs, toMs, stepMs, now);
    const markers = this.#markers.read(fromMs, toMs);
    const since = this.#history.since(this.#state, fromMs, now);
    return { now, points, since, markers, gaps: this.#markers.gaps(fromMs, toMs) };
  }

  callsOfLastHour(now: InstantMs): CallCounts {
    return this.#history.callsOfLastHour(this.#state, now);
  }

  /** Finds calls in the log and among the remembered decisions. */
  calls(filter: CallQuery, now: InstantMs): CallsFound {
    return this.#calls.search(filter, this.#state.decisions, now);
  }

  warnings(): Warning[] {
    return this.#warnings.latest();
  }

  waits(now: InstantMs): Pick<PoolStatus, 'wait_p50_ms' | 'wait_p95_ms'> {
    return waitQuantiles(this.#history.recentWaits(this.#state, now));
  }

  lastHour(now: InstantMs): LastHour {
    return this.#history.lastHour(this.#state, now);
  }

  lately(now: InstantMs): Pick<PoolStatus, 'lately'> {
    const lately = this.#history.lately(this.#state, now);
    return lately === null ? {} : { lately };
  }

  metrics(status: PoolStatus, now: InstantMs): PoolMetrics {
    const { totals } = this.#state;
    return {
      status,
      waits: totals.wait,
      holds: totals.hold,
      ...readCounters(totals),
      warnings_total: this.#warnings.totals(),
      ...slotsByKind(this.#state),
      ...queuedByScope(this.#state, now),
    };
  }
}

/** Adds up the slots of holders that are not calls. Returns nothing if there are none. */
function slotsByKind({ leases }: GroupState): Pick<PoolMetrics, 'slots_by_kind'> {
  const slots: Partial<Record<HoldKind, number>> = {};
  for (const { holder, phase, slots: own } of leases.values()) {
    const { kind } = holder;
    if (kind !== undefined && phase !== 'cooling') slots[kind] = (slots[kind] ?? 0) + own;
  }
  return Object.keys(slots).length === 0 ? {} : { slots_by_kind: slots };
}

/** Whether the pool writes its bound when it falls idle, and the open minute of its history with it. */
function isCarried(state: GroupState): boolean {
  return isInUse(state) || markOf(state.bound) > 0;
}
