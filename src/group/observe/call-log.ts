import type { CallQuery, CallsFound, StoredCall } from '../../contract/calls.ts';
import type { CallLogConfig } from '../../contract/config/call-log.ts';
import { latestFirst, type Decision, type DecisionLog } from '../../core/parts/decision-log.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import { isEnd, keptFor, lineOf } from './call-line.ts';
import { CALL_ROWS_MAX, type CallRows } from './call-rows.ts';
import { asKept, fitting, searchCalls, textsOf } from './call-search.ts';

/**
 * Calls for which a row may be written: a fortieth of a row for each. With the most groups that a call may be in, that is a
 * tenth.
 */
export const CALLS_A_ROW = 40;

/** Characters at which a row is full, and those that it never exceeds. */
const FULL_LENGTH = 12_288;
const LENGTH_MAX = 32_768;

/** Maximum rows a minute. What comes beyond has no line. */
const ROWS_A_MINUTE = 10;

const DAY_MS = 86_400_000;
const DAY_MINUTES = 1_440;

/**
 * The log that is kept of a pool's calls. Lines are gathered in memory, and written as one row with whatever is written then:
 * once they fill one, or the minute is over. Those of a pool that falls idle before ride on its bound, until there were calls enough
 * for a row.
 */
export class CallLog {
  readonly #rows: CallRows;
  readonly #config: () => CallLogConfig;
  /** Not written as a row yet, the oldest first. */
  #lines: StoredCall[];
  #length: number;
  /** Calls since the last row. */
  #calls: number;
  /** Some of the lines may be in a row too: an instance before has left them. */
  #mayBeWritten: boolean;
  #isOwed = false;
  /** All of them ride on the bound. */
  #isCarried = false;
  #rowsOfMinute = 0;
  /** Lines of this minute of calls that nothing was wrong with. */
  #samplesOfMinute = 0;
  /** Decisions that have a line. */
  readonly #logged = new WeakSet<Decision>();

  /** @param before lines that the instance before has left in no row */
  constructor(rows: CallRows, config: () => CallLogConfig, before: readonly StoredCall[]) {
    this.#rows = rows;
    this.#config = config;
    this.#lines = [...before];
    this.#length = JSON.stringify(before).length;
    this.#calls = before.length;
    this.#mayBeWritten = before.length > 0;
    this.#isCarried = before.length > 0;
  }

  /** Whether there are lines that nothing on disk has. */
  get hasUnkept(): boolean {
    return this.#lines.length > 0 && !this.#isCarried;
  }

  /** Lines that are in no row. */
  get lines(): readonly StoredCall[] {
    return this.#lines;
  }

  /** Adds lines that another instance has gathered and never wrote. */
  adopt(lines: readonly StoredCall[]): void {
    this.#calls += lines.length;
    for (const line of lines) this.#add(line);
  }

  /** Whether there is a row to write now. */
  get isDue(): boolean {
    if (this.#lines.length === 0 || this.#calls < CALLS_A_ROW) return false;
    return this.#isOwed || (this.#isFull && this.#rowsOfMinute < ROWS_A_MINUTE);
  }

  /** Notes what the last event ended. */
  note({ over }: DecisionLog, now: InstantMs): void {
    if (over.length === 0) return;
    const config = this.#config();
    if (config.days === 0) return this.#drop();
    for (const decision of over) {
      if (!isEnd(decision)) continue;
      this.#calls += 1;
      const why = keptFor(decision, config);
      if (why === null) continue;
      if (why === 'sample' && !this.#hasRoomForSample(config)) continue;
      this.#logged.add(decision);
      this.#add(lineOf(decision, why, now));
    }
  }

  /** Notes that a minute is over: its lines are due. */
  endMinute(): void {
    this.#rowsOfMinute = 0;
    this.#samplesOfMinute = 0;
    this.#isOwed = true;
  }

  /** Takes the lines that ride on the bound of a pool that falls idle. Where a row is earned, they go there. */
  carry(): readonly StoredCall[] {
    if (this.#calls >= CALLS_A_ROW) {
      this.#isOwed = true;
      return [];
    }
    this.#isCarried = true;
    return this.#lines;
  }

  /** Writes a row, if one is due. `isLast`: nothing may be left for later. */
  write(isLast = false): void {
    if (!this.isDue && !(isLast && this.hasUnkept)) return;
    this.#dropWritten();
    this.#isOwed = false;
    if (this.#lines.length === 0) return;
    this.#rows.write(this.#lines);
    this.#rowsOfMinute += 1;
    this.#drop();
  }

  /** Finds calls, and where one is looked for by a name of its own, those that the pool remembers without a line. */
  search(filter: CallQuery, decisions: DecisionLog, now: InstantMs): CallsFound {
    this.#dropWritten();
    const keptFrom = now - this.#config().days * DAY_MS;
    const within = asKept({ ...filter, fromMs: Math.max(filter.fromMs, keptFrom) });
    const found = searchCalls(
      within,
      this.#lines.toReversed(),
      this.#rows.read(within.toMs, textsOf(within)),
    );
    const { doneTo } = found;
    const remembered = this.#remembered(within, decisions).filter(({ at }) => at >= doneTo);
    const calls = [...found.calls, ...remembered].toSorted((a, b) => b.at - a.at);
    return { calls, doneTo: doneTo <= keptFrom ? filter.fromMs : doneTo };
  }

  #remembered(filter: CallQuery, decisions: DecisionLog): StoredCall[] {
    const { anyOf, leases, requestId } = filter;
    if ((anyOf ?? leases ?? requestId) === undefined) return [];
    return latestFirst(decisions)
      .filter((decision) => isEnd(decision) && !this.#logged.has(decision))
      .map((decision) => lineOf(decision, 'recent', decision.endedAt ?? decision.decidedAt))
      .filter(fitting(filter));
  }

  /** Takes the place of a line in the sample, of which no more comes in a minute than the rows hold for all of the days. */
  #hasRoomForSample({ days }: CallLogConfig): boolean {
    const rows = Math.max(1, Math.floor(CALL_ROWS_MAX / (days * DAY_MINUTES)));
    if (this.#samplesOfMinute >= rows * CALLS_A_ROW) return false;
    this.#samplesOfMinute += 1;
    return true;
  }

  get #isFull(): boolean {
    return this.#lines.length >= CALLS_A_ROW || this.#length >= FULL_LENGTH;
  }

  #add(line: StoredCall): void {
    const { length } = JSON.stringify(line);
    if (this.#isFull && this.#rowsOfMinute >= ROWS_A_MINUTE) return;
    if (this.#length + length > LENGTH_MAX) return;
    this.#lines.push(line);
    this.#isCarried = false;
    this.#length += length + 1;
  }

  /** Lets go of lines that stand in a row, which the instance before wrote after it had left them. */
  #dropWritten(): void {
    if (!this.#mayBeWritten) return;
    this.#mayBeWritten = false;
    const until = this.#rows.writtenUntil() ?? -Infinity;
    this.#lines = this.#lines.filter(({ at }) => at > until);
  }

  #drop(): void {
    this.#lines = [];
    this.#length = 0;
    this.#calls = 0;
    this.#mayBeWritten = false;
  }
}
