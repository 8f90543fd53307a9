import {
  MINUTE_MS,
  type CallCounts,
  type HistoryGap,
  type HistoryPoint,
} from '../../contract/history.ts';
import type { LastHour, Lately } from '../../contract/status.ts';
import {
  sumOfCalls,
  joinInTime,
  inSteps,
  lastHourOf,
  latelyOf,
  type Sums,
} from '../../history/points.ts';
import { heldAtMember, heldByCalls, slotsLearned } from '../../core/capacity.ts';
import { countsSince, emptyCounts, quantileMs } from '../../core/parts/totals.ts';
import { IMPLICIT, type InstantMs } from '../../core/words/ids.ts';
import { LEASE_TTL_MS } from '../../core/words/settings.ts';
import { queueLength } from '../../core/parts/queue.ts';
import { isSplit, type GroupState } from '../../core/state.ts';
import type { HistoryRows } from './rows.ts';
import { MinuteTenants } from './call-line.ts';

/** Minimum interval between writes of the open minute of an idle pool. */
const IDLE_WRITE_EVERY_MS = 15_000;

/** Age of the waits that count for the quantiles of the status. */
const RECENT_MS = 5 * MINUTE_MS;

const HOUR_MS = 60 * MINUTE_MS;

type TotalsSnapshot = Omit<Sums, 'slotMs' | 'tenantsWaited' | 'tenantsHeld' | 'callsOf'>;

const NOTHING: TotalsSnapshot = {
  granted: 0,
  rejected: {},
  refusals: {},
  ended: {},
  answeredErrors: {},
  inputTokens: 0,
  outputTokens: 0,
  usd: 0,
  waits: emptyCounts(),
  waitedFor: {},
  waitedForMs: {},
};

/**
 * The history of a pool, minute by minute. Gauges are updated in memory after every event. All other values are
 * differences between the totals at both ends of a minute. One row is written per minute in which something happened.
 *
 * An idle object is unloaded, and no row may keep it awake. So the open minute is stored with the bound of a pool that
 * falls idle. An open minute without grants is written at most every 15 s, and the last seconds before an unload may be
 * missing.
 */
export class History {
  readonly #rows: HistoryRows;
  #minuteAt: number;
  #notedAt: InstantMs;
  #inUse = 0;
  #queued = 0;
  /** The end of the decision log at the last event. */
  #decidedTo = 0;
  #inUseMax = 0;
  #slotMs = 0;
  #queuedMax = 0;
  /** Maximum slots in use of each member that had any. */
  #membersMax: Record<string, number> = {};
  readonly #tenants: MinuteTenants;
  /** The totals at the start of the minute. */
  #before: TotalsSnapshot = NOTHING;
  /** The point that an earlier instance wrote of this minute. */
  #written: HistoryPoint | null;
  /** Ended minutes that are not written yet. */
  #closed: HistoryPoint[] = [];
  #hasNews = false;
  /** Whether the current state of the open minute is stored with the bound. */
  #isTaken = false;
  #idleWrittenAt = 0;
  /** The minutes of the last hour before the one that begins at `at`, or null if they are not read yet. */
  #hour: {
    readonly at: number;
    readonly minutes: readonly HistoryPoint[];
    /** When the oldest written point begins, or any point from before the hour. null if there is none. */
    readonly sinceMs: number | null;
  } | null = null;
  /** Counts of waits at the ends of the last minutes, oldest first. */
  #recent: { readonly at: number; readonly waits: readonly number[] }[] = [];

  /** @param before the minute in which the previous instance fell idle and that is in no row yet, or null */
  constructor(rows: HistoryRows, before: HistoryPoint | null, now: InstantMs) {
    this.#rows = rows;
    this.#minuteAt = minuteOf(now);
    this.#notedAt = now;
    this.#tenants = new MinuteTenants(this.#minuteAt);
    const isOpen = before?.at === this.#minuteAt;
    const row = rows.minute(before?.at ?? this.#minuteAt);
    // The row is newer if a call was rejected after the pool fell idle, or if the minute was written since.
    const isNews = before !== null && (row === null || countOf(row) < countOf(before));
    this.#written = isOpen ? (isNews ? before : row) : rows.minute(this.#minuteAt);
    if (isNews && !isOpen) this.#closed.push(before);
  }

  /**
   * Returns the time without records. The previous instance wrote at `writtenAt` that slots were held, and stopped
   * afterwards. Its calls were renewed or ended within a TTL. Returns null if all of it is written.
   */
  lostSince(writtenAt: InstantMs, now: InstantMs): HistoryGap | null {
    const minuteAt = minuteOf(writtenAt);
    const until = this.#rows.writtenUntil(minuteAt);
    const to = Math.min(now, writtenAt + LEASE_TTL_MS);
    const from = until ?? minuteAt;
    const isWhole = from >= minuteAt + MINUTE_MS;
    return isWhole || from >= to ? null : { from, to };
  }

  /**
   * Advances to the minute of an event before it is applied. Returns the minute that ended, if any, even if nothing
   * happened in it.
   */
  turn(state: GroupState, now: InstantMs): HistoryPoint | null {
    return now < this.#minuteAt + MINUTE_MS ? null : this.#close(state, now);
  }

  noteStep({ decisions }: GroupState): void {
    this.#tenants.note(decisions);
  }

  /** Records the state after an event. */
  note(state: GroupState, now: InstantMs): void {
    const { queue, decisions } = state;
    this.#pass(now);
    const wasIdle = this.#inUse + this.#queued === 0;
    this.#inUse = heldByCalls(state);
    this.#queued = queueLength(queue);
    if (this.#inUse > this.#inUseMax) this.#inUseMax = this.#inUse;
    if (this.#queued > this.#queuedMax) this.#queuedMax = this.#queued;
    this.#noteMembers(state);
    const isIdle = this.#inUse + this.#queued === 0;
    if (!wasIdle || !isIdle || decisions.next !== this.#decidedTo) {
      this.#hasNews = true;
      this.#isTaken = false;
    }
    this.#decidedTo = decisions.next;
  }

  /**
   * Whether there is something to write now.
   *
   * @param isCarried whether the open minute is stored with the bound when the pool falls idle
   */
  isDue(isCarried: boolean, now: InstantMs): boolean {
    return this.#closed.length > 0 || this.#isIdleWriteDue(isCarried, now);
  }

  /** Returns the open minute to be stored elsewhere, or null if nothing happened in it. */
  takeOpen(state: GroupState, now: InstantMs): HistoryPoint | null {
    const point = this.#open(state, now);
    this.#isTaken = true;
    this.#idleWrittenAt = now;
    return isEventful(point) ? point : null;
  }

  write(state: GroupState, isCarried: boolean, now: InstantMs): void {
    if (!this.isDue(isCarried, now)) return;
    for (const point of this.#closed) this.#rows.write(point);
    this.#closed = [];
    if (this.#isIdleWriteDue(isCarried, now)) {
      this.#rows.write(this.#open(state, now), now);
      this.#hasNews = false;
      this.#idleWrittenAt = now;
    }
  }

  /** Writes everything that is not on disk. The open minute will not change any more. */
  flush(state: GroupState, now: InstantMs): void {
    this.write(state, true, now);
    if (!this.#hasNews || this.#isTaken) return;
    this.#rows.write(this.#open(state, now), this.#minuteAt + MINUTE_MS);
    this.#hasNews = false;
  }

  /** Reads the points from `fromMs` up to `toMs` in steps of `stepMs`, with the open minute. */
  read(
    state: GroupState,
    fromMs: number,
    toMs: number,
    stepMs: number,
    now: InstantMs,
  ): HistoryPoint[] {
    const rest = [...this.#closed, this.#open(state, now)];
    const firstAt = rest[0]?.at ?? now;
    const written = this.#rows.read(fromMs, Math.min(toMs, firstAt), stepMs, now);
    const unwritten = rest.filter(({ at }) => at + MINUTE_MS > fromMs && at < toMs);
    const points = [...written, ...unwritten.filter(isEventful)];
    // Charts do not show calls by key, which would be most of the answer.
    return inSteps(points.map(withoutCalls), stepMs);
  }

  /**
   * Returns since when there are points: the time of the oldest, or of any point from before `fromMs`. Returns null if
   * there is none.
   */
  since(state: GroupState, fromMs: number, now: InstantMs): number | null {
    const rest = [...this.#closed, this.#open(state, now)].filter(isEventful);
    const all = [this.#rows.oldestAt(fromMs), ...rest.map(({ at }) => at)];
    return all.reduce<number | null>((least, at) => {
      return least === null || at === null ? (least ?? at) : Math.min(least, at);
    }, null);
  }

  /** Counts the waits of calls granted in the last five minutes, as far as this instance has run. */
  recentWaits({ totals }: GroupState, now: InstantMs): number[] {
    const before = this.#recent.findLast(({ at }) => at <= now - RECENT_MS);
    return countsSince(totals.wait.counts, before?.waits ?? NOTHING.waits);
  }

  lastHour(state: GroupState, now: InstantMs): LastHour {
    const minutes = this.#minutesOfHour(state, now);
    const sinceMs = this.#hour?.sinceMs ?? minutes.find(isEventful)?.at ?? null;
    return lastHourOf(minutes, sinceMs, now);
  }

  lately(state: GroupState, now: InstantMs): Lately | null {
    return latelyOf(this.#minutesOfHour(state, now), now);
  }

  /** Counts the calls of the last hour by key, upstream and model. */
  callsOfLastHour(state: GroupState, now: InstantMs): CallCounts {
    return sumOfCalls(this.#minutesOfHour(state, now).map(({ callsOf = [] }) => callsOf));
  }

  /** Lists the points of the last hour. Ended minutes are read at most once per minute, and only on request. */
  #minutesOfHour(state: GroupState, now: InstantMs): HistoryPoint[] {
    if (this.#hour?.at !== this.#minuteAt) {
      const fromMs = this.#minuteAt - HOUR_MS + MINUTE_MS;
      const written = this.#rows.read(fromMs, this.#minuteAt, MINUTE_MS, now);
      const unwritten = this.#closed.filter(({ at }) => at >= fromMs);
      const sinceMs = this.#rows.oldestAt(fromMs);
      this.#hour = { at: this.#minuteAt, minutes: [...written, ...unwritten], sinceMs };
    }
    return [...this.#hour.minutes, this.#open(state, now)];
  }

  /** Ends the minute. The time between its end and `now` was idle, or the process was suspended. */
  #close(state: GroupState, now: InstantMs): HistoryPoint {
    const endsAt = this.#minuteAt + MINUTE_MS;
    this.#pass(endsAt as InstantMs);
    const point = this.#open(state, now);
    const isWritten = !this.#hasNews && this.#inUse === 0;
    if (!isWritten && isEventful(point)) this.#closed.push(point);
    const waits = [...state.totals.wait.counts];
    this.#recent = [
      ...this.#recent.filter(({ at }) => at > now - 2 * RECENT_MS),
      { at: endsAt, waits },
    ];
    this.#before = snapshotOf(state);
    this.#minuteAt = minuteOf(now);
    this.#tenants.begin(this.#minuteAt);
    this.#notedAt = Math.max(this.#notedAt, this.#minuteAt) as InstantMs;
    this.#inUseMax = this.#inUse;
    this.#slotMs = 0;
    this.#queuedMax = this.#queued;
    this.#membersMax = {};
    this.#noteMembers(state);
    this.#written = null;
    this.#hasNews = false;
    return point;
  }

  #isIdleWriteDue(isCarried: boolean, now: InstantMs): boolean {
    const isKept = isCarried || this.#isTaken;
    return this.#hasNews && !isKept && now - this.#idleWrittenAt >= IDLE_WRITE_EVERY_MS;
  }

  #noteMembers(state: GroupState): void {
    if (!isSplit(state)) return;
    for (const member of state.members.values()) {
      const inUse = heldAtMember(member);
      // Calls from before the group had members are in the group's own figure.
      if (member.id === IMPLICIT || inUse <= (this.#membersMax[member.id] ?? 0)) continue;
      this.#membersMax[member.id] = inUse;
    }
  }

  /** Adds up slot time since the last event. */
  #pass(now: InstantMs): void {
    if (now <= this.#notedAt) return;
    this.#slotMs += this.#inUse * (now - this.#notedAt);
    this.#notedAt = now;
  }

  #open(state: GroupState, at: InstantMs): HistoryPoint {
    const now = snapshotOf(state);
    const before = this.#before;
    const point: HistoryPoint = {
      at: this.#minuteAt,
      inUseMax: this.#inUseMax,
      slotMs: this.#slotMs,
      limit: finite(slotsLearned(state)),
      limitConfigured: finite(slotsConfigured(state)),
      queuedMax: this.#queuedMax,
      waits: countsSince(now.waits, before.waits),
      granted: now.granted - before.granted,
      rejected: talliesSince(now.rejected, before.rejected),
      refusals: talliesSince(now.refusals, before.refusals),
      ended: talliesSince(now.ended, before.ended),
      ...answeredSince(now, before),
      inputTokens: now.inputTokens - before.inputTokens,
      outputTokens: now.outputTokens - before.outputTokens,
      usd: now.usd - before.usd,
      waitedFor: talliesSince(now.waitedFor, before.waitedFor),
      waitedForMs: talliesSince(now.waitedForMs, before.waitedForMs),
      ...this.#tenants.read(state, at),
      ...membersSince(now, before),
      ...(isSplit(state) ? { inUseMaxByMember: { ...this.#membersMax } } : {}),
    };
    return this.#written === null ? point : joinInTime(this.#written, point);
  }
}

/** Returns the quantiles of waits for the status, or null if no call was granted. */
export function waitQuantiles(waits: readonly number[]): {
  readonly wait_p50_ms: number | null;
  readonly wait_p95_ms: number | null;
} {
  return { wait_p50_ms: quantileMs(waits, 0.5), wait_p95_ms: quantileMs(waits, 0.95) };
}

function snapshotOf(state: GroupState): TotalsSnapshot {
  const { totals } = state;
  const { granted, rejected, refusals, inputTokens, outputTokens, usd, wait } = totals;
  return {
    granted,
    rejected: { ...rejected },
    refusals: { ...refusals },
    ended: { ...totals.ended },
    answeredErrors: { ...totals.answeredErrors },
    inputTokens,
    outputTokens,
    usd,
    waits: [...wait.counts],
    waitedFor: { ...totals.waitedFor },
    waitedForMs: { ...totals.waitedForMs },
    ...ofMembers(state),
  };
}

type CountsByMember = Pick<HistoryPoint, 'grantedByMember' | 'refusedByMember'>;

function ofMembers(state: GroupState): CountsByMember {
  if (!isSplit(state)) return {};
  const all = [...state.members.values()];
  return {
    grantedByMember: Object.fromEntries(all.map(({ id, totals }) => [id, totals.granted])),
    refusedByMember: Object.fromEntries(all.map(({ id, totals }) => [id, totals.refused])),
  };
}

/** Counts the calls of members since then. Members without any are left out, because a row is written each minute. */
function membersSince(now: CountsByMember, before: CountsByMember): CountsByMember {
  if (now.grantedByMember === undefined) return {};
  return {
    grantedByMember: talliesSince(now.grantedByMember, before.grantedByMember ?? {}),
    refusedByMember: talliesSince(now.refusedByMember ?? {}, before.refusedByMember ?? {}),
  };
}

/** Counts calls answered with an error status since then. It is left out if empty, because most minutes have none. */
function answeredSince(
  { answeredErrors: now = {} }: TotalsSnapshot,
  { answeredErrors: before = {} }: TotalsSnapshot,
): Pick<HistoryPoint, 'answeredErrors'> {
  const answeredErrors = talliesSince(now, before);
  return Object.keys(answeredErrors).length === 0 ? {} : { answeredErrors };
}

function talliesSince(
  now: Readonly<Record<string, number>>,
  before: Readonly<Record<string, number>>,
): Record<string, number> {
  const since = Object.entries(now).map(
    ([name, count]) => [name, count - (before[name] ?? 0)] as const,
  );
  return Object.fromEntries(since.filter(([, count]) => count > 0));
}

/** Whether a minute needs a point: a slot was held, a call arrived, or usage was reported. */
function isEventful(point: HistoryPoint): boolean {
  const { inUseMax, queuedMax, granted, rejected, refusals, inputTokens, outputTokens } = point;
  const counts = inUseMax + queuedMax + granted + inputTokens + outputTokens;
  return counts > 0 || Object.keys(rejected).length + Object.keys(refusals).length > 0;
}

/** Counts everything that happened in a minute. Of two points of a minute, the later one has no lower count. */
function countOf({ granted, rejected, refusals, inputTokens, outputTokens }: HistoryPoint): number {
  const refused = [...Object.values(rejected), ...Object.values(refusals)];
  return [granted, inputTokens, outputTokens, ...refused].reduce<number>(
    (sum, count) => sum + (count ?? 0),
    0,
  );
}

/** Returns the sum of the members' configured slots, at most the group's own limit. */
function slotsConfigured({ settings, serving }: GroupState): number {
  const enabled = serving.filter((member) => member.settings.isEnabled);
  const ofEach = enabled.reduce((sum, member) => sum + member.settings.slotsMax, 0);
  return Math.min(settings.slotsMax, ofEach);
}

function finite(slots: number): number | null {
  return Number.isFinite(slots) ? slots : null;
}

function withoutCalls({ callsOf: _calls, ...point }: HistoryPoint): HistoryPoint {
  return point;
}

function minuteOf(at: number): number {
  return Math.floor(at / MINUTE_MS) * MINUTE_MS;
}
