import { directoryOf, feedOf, type Env } from '../../env.ts';
import type { PoolReport } from '../../contract/rpc/feed-rpc.ts';
import type { CallQuery, CallsFound, StoredCall } from '../../contract/calls.ts';
import type { CallLogConfig } from '../../contract/config/call-log.ts';
import type { CallCounts, HistoryPoint, PoolHistory } from '../../contract/history.ts';
import type { PoolMetrics } from '../../contract/rpc/pool-metrics.ts';
import type { Warning } from '../../contract/warnings.ts';
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
import { CallRows } from './call-rows.ts';
import { FeedLink } from './feed-link.ts';
import { HistoryRows } from './history-rows.ts';
import { History, waitQuantiles } from './history.ts';
import { Markers } from './markers.ts';
import { queuedByScope } from './scope-status.ts';
import type { GroupStore } from '../store.ts';
import type { Tables } from '../tables.ts';
import { ViolationLog } from './violation-log.ts';
import { Warnings } from './warnings.ts';
import type { Schedule } from '../../runtime/call-clock.ts';
import { deliverWarning, webhookDependencies } from '../../runtime/webhook.ts';

/** Everything that the watching of one pool needs. */
interface WatchedPool {
  readonly env: Env;
  readonly ctx: DurableObjectState;
  readonly after: Schedule;
  readonly tables: Tables;
  readonly store: GroupStore;
  readonly identity: PoolIdentity;
  readonly bounds: () => WarningBounds;
  /** Slots that were held when the instance before last wrote. */
  readonly heldBefore: number;
  /** When that was. Null: it is not known. */
  readonly writtenBefore: InstantMs | null;
  /** The minute in which the instance before fell idle. Null: none. */
  readonly minuteBefore: HistoryPoint | null;
  /** Lines of the log that it has left in no row. */
  readonly callsBefore: readonly StoredCall[];
  /** Which calls are kept in the log. */
  readonly log: () => CallLogConfig;
  readonly report: (isDetailed: boolean) => PoolReport;
}

/** Watches a pool and tells of it: its history, its warnings and its counters. It decides nothing. */
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
      // Lost, it still stands in the pool's own list.
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

  /** Notes that an event comes. */
  before(now: InstantMs): void {
    const minute = this.#history.turn(this.#state, now);
    if (minute !== null) this.#calls.endMinute();
    if (minute !== null) this.#warnings.noteMinute(this.#state, minute, this.#bounds(), now);
  }

  /** Notes what a step of the core has decided and ended. */
  hear(now: InstantMs): void {
    this.#history.hear(this.#state);
    this.#calls.note(this.#state.decisions, now);
  }

  /** Notes an event that was applied. Returns what is to be written soon: the bound with all else, or all else. Null: nothing. */
  after(event: GroupEvent, now: InstantMs): 'bound' | 'rest' | null {
    this.#history.note(this.#state, now);
    this.#markers.note(this.#state, event, now);
    this.#warnings.note(this.#state, this.#bounds(), now);
    this.#violations.note(this.#state.totals.violations, now);
    this.feed.note(now);
    if (!this.#tables.isOpen) return null;
    const isHistoryDue = this.#history.isDue(isCarried(this.#state), now);
    // The one row that a pool without slots in use writes is to carry the lines too, and the budget that stops it.
    const isMore = this.#calls.hasUnkept || this.#state.budgetStop !== null;
    if (isHistoryDue && isMore && !isCarried(this.#state)) return 'bound';
    return isHistoryDue || this.#markers.isDue || this.#calls.isDue ? 'rest' : null;
  }

  /** Writes what is due, in the transaction of whoever writes anyway. */
  write(now: InstantMs): void {
    if (!this.#tables.isOpen) return;
    this.#history.write(this.#state, isCarried(this.#state), now);
    this.#markers.write();
    this.#calls.write();
  }

  /** Takes what is to be kept with the bound of a pool that falls idle. */
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

  /** Lines of the log that are in no row: those of a pool that stores nothing are all it has. */
  get callLines(): readonly StoredCall[] {
    return this.#calls.lines;
  }

  /** Adds lines of the log that the pool had before it was stored. */
  adoptCalls(lines: readonly StoredCall[]): void {
    this.#calls.adopt(lines);
  }

  /** Writes all that is not on disk: nothing will come any more. */
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

  /** Finds calls in the log, and among those that the pool remembers. */
  calls(filter: CallQuery, now: InstantMs): CallsFound {
    return this.#calls.search(filter, this.#state.decisions, now);
  }

  warnings(): Warning[] {
    return this.#warnings.latest();
  }

  /** Tells what the status shows of waits. */
  waits(now: InstantMs): Pick<PoolStatus, 'wait_p50_ms' | 'wait_p95_ms'> {
    return waitQuantiles(this.#history.recentWaits(this.#state, now));
  }

  /** Tells what the status shows of the last hour. */
  lastHour(now: InstantMs): LastHour {
    return this.#history.lastHour(this.#state, now);
  }

  /** Tells what the status shows of the last minutes. */
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
      granted_again_total: totals.grantedAgain,
      left_total: totals.left,
      moved_total: totals.moved,
      ended_total: totals.ended,
      cut_total: totals.cut,
      reports_total: totals.reports,
      input_tokens_total: totals.inputTokens,
      output_tokens_total: totals.outputTokens,
      cost_usd_total: totals.usd,
      warnings_total: this.#warnings.totals(),
      violations_total: totals.violations,
      ...slotsByKind(this.#state),
      ...queuedByScope(this.#state, now),
    };
  }
}

/** Adds up the slots of holders that are no calls; nothing where there are none. */
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
