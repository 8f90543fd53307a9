import {
  withoutAges,
  type FeedRpc,
  type FeedWants,
  type PoolReport,
  type PoolWatchRequest,
  type WatchRequest,
} from '../../contract/rpc/feed-rpc.ts';
import type { Warning } from '../../contract/attention.ts';
import type { Schedule } from '../../runtime/async.ts';

/** Delay of a push. Callers are answered first, and several changes share one push. */
const PUSH_DELAY_MS = 50;

/** Delay before a failed push is repeated. */
const RETRY_MS = 5_000;

/** Remaining watch time below which the stored end is updated, so that a row is written only every few minutes. */
const STORED_AHEAD_MS = 300_000;

interface WatchMemory {
  recall(key: 'watched'): string | null;
  remember(key: 'watched', value: string): void;
}

interface FeedContext {
  readonly hub: () => FeedRpc;
  readonly waitUntil: (work: Promise<unknown>) => void;
  readonly after: Schedule;
}

/**
 * Pushes a pool's changes to the dashboards' hub while the hub watches it. A push follows the event, is rate limited,
 * and delays no response. An unwatched pool pays one comparison per event.
 *
 * The watch outlives the instance, because an idle pool is unloaded and must be visible when it wakes.
 */
export class FeedLink {
  readonly #memory: WatchMemory;
  readonly #report: (isDetailed: boolean) => PoolReport;
  readonly #way: FeedContext;
  /** null if the pool is not watched. */
  #watch: PoolWatchRequest | null;
  #stored: PoolWatchRequest | null;
  #isDetailed = false;
  /** Requests of the hub so far. An answer to a push from before the last request is outdated. */
  #requests = 0;
  /** The last pushed report as JSON, without ages. */
  #reported: string | null = null;
  #reportedAt = 0;
  /** Cancels the scheduled push, or null if none is scheduled. */
  #cancel: (() => void) | null = null;
  /** Whether a report is being built. Building it is an event too, but no change. */
  #isReading = false;

  constructor(memory: WatchMemory, report: (isDetailed: boolean) => PoolReport, way: FeedContext) {
    this.#memory = memory;
    this.#report = report;
    this.#way = way;
    const row = memory.recall('watched');
    this.#watch = row === null ? null : (JSON.parse(row) as PoolWatchRequest);
    this.#stored = this.#watch;
  }

  watch({ isDetailed, ...watch }: WatchRequest): PoolReport {
    this.#requests += 1;
    this.#watch = watch;
    this.#isDetailed = isDetailed;
    const report = this.#read();
    this.#keep(watch, report.at);
    this.#reported = newsIn(report);
    this.#reportedAt = report.at;
    return report;
  }

  /** Starts or continues to push, if the hub asks only pools that are in use. */
  begin(watch: PoolWatchRequest, now: number): void {
    this.#requests += 1;
    this.#watch = watch;
    this.#keep(watch, now);
    this.#reported = null;
    this.#pushAt(now + PUSH_DELAY_MS, now);
  }

  /** Handles an event: schedules a push of its changes. */
  note(now: number): void {
    if (this.#watch === null || this.#isReading) return;
    if (this.#cancel !== null) return;
    if (now >= this.#watch.untilAt) {
      this.#watch = null;
      return;
    }
    this.#pushAt(Math.max(now + PUSH_DELAY_MS, this.#reportedAt + this.#watch.everyMs), now);
  }

  warn(warning: Warning): void {
    if (this.#watch === null) return;
    const reported = this.#way.hub().warned(warning);
    // A lost warning is still in the list of warnings.
    this.#way.waitUntil(reported.catch(() => {}));
  }

  #push(): void {
    this.#cancel = null;
    if (this.#watch === null) return;
    const report = this.#read();
    const news = newsIn(report);
    if (news === this.#reported) return;
    this.#reported = news;
    this.#reportedAt = report.at;
    const request = this.#requests;
    const pushed = this.#way.hub().push(this.#watch.key, report);
    this.#way.waitUntil(
      pushed.then(
        (wants) => this.#applyWants(wants, request),
        () => this.#retry(),
      ),
    );
  }

  #applyWants(wants: FeedWants, request: number): void {
    if (request !== this.#requests) return;
    if (wants === 'nothing') this.#watch = null;
    const isNew = wants === 'detail' && !this.#isDetailed;
    this.#isDetailed = wants === 'detail';
    if (isNew) this.note(this.#reportedAt);
  }

  #retry(): void {
    this.#reported = null;
    if (this.#watch === null || this.#cancel !== null) return;
    this.#pushAt(this.#reportedAt + RETRY_MS, this.#reportedAt);
  }

  #pushAt(dueAt: number, now: number): void {
    this.#cancel?.();
    this.#cancel = this.#way.after(Math.max(0, dueAt - now), () => this.#push());
  }

  #read(): PoolReport {
    this.#isReading = true;
    try {
      return this.#report(this.#isDetailed);
    } finally {
      this.#isReading = false;
    }
  }

  #keep(watch: PoolWatchRequest, now: number): void {
    const { key, everyMs, untilAt = 0 } = this.#stored ?? {};
    const isSame = key === watch.key && everyMs === watch.everyMs;
    if (isSame && untilAt - now >= Math.min(STORED_AHEAD_MS, watch.untilAt - now)) return;
    this.#stored = watch;
    this.#memory.remember('watched', JSON.stringify(watch));
  }
}

function newsIn(report: PoolReport): string {
  return JSON.stringify(report, withoutAges);
}
