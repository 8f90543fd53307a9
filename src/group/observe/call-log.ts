import type { CallQuery, CallsFound, StoredCall } from '../../contract/calls.ts';
import type { CallLogConfig } from '../../contract/config/group.ts';
import { latestFirst, type Decision, type DecisionLog } from '../../core/parts/decision-log.ts';
import { ticketOf, type InstantMs, type LeaseId } from '../../core/words/ids.ts';
import { isEnd, keptFor, lineOf, keptText } from './call-line.ts';
import { CALL_ROWS_MAX, type CallRows, type CallRow } from './rows.ts';

/** The call log: which calls have a line, and searches over the lines. */

/**
 * Number of calls that earn one row, so each call costs a fortieth of a row. A call in the maximum number of groups
 * costs a tenth.
 */
export const CALLS_A_ROW = 40;

/** Length in characters at which a row is full, and its maximum. */
const FULL_LENGTH = 12_288;
const LENGTH_MAX = 32_768;

/** Maximum rows per minute. Further calls are not logged. */
const ROWS_A_MINUTE = 10;

const DAY_MS = 86_400_000;
const DAY_MINUTES = 1_440;

/**
 * The call log of a pool. Lines are collected in memory. They are written as one row together with another write, once
 * they fill a row or the minute has ended.
 *
 * If a pool falls idle earlier, its lines are stored with its bound until there were enough calls for a row.
 */
export class CallLog {
  readonly #rows: CallRows;
  readonly #config: () => CallLogConfig;
  /** Lines that are not in a row yet, oldest first. */
  #lines: StoredCall[];
  #length: number;
  /** Calls since the last row. */
  #calls: number;
  /** Whether some lines may already be in a row, because an earlier instance left them. */
  #mayBeWritten: boolean;
  #isOwed = false;
  /** Whether all lines are stored with the bound. */
  #isCarried = false;
  #rowsOfMinute = 0;
  #samplesOfMinute = 0;
  readonly #logged = new WeakSet<Decision>();

  /** @param before lines that the previous instance left in no row */
  constructor(rows: CallRows, config: () => CallLogConfig, before: readonly StoredCall[]) {
    this.#rows = rows;
    this.#config = config;
    this.#lines = [...before];
    this.#length = JSON.stringify(before).length;
    this.#calls = before.length;
    this.#mayBeWritten = before.length > 0;
    this.#isCarried = before.length > 0;
  }

  /** Whether there are lines that are not on disk. */
  get hasUnkept(): boolean {
    return this.#lines.length > 0 && !this.#isCarried;
  }

  /** Lines that are in no row. */
  get lines(): readonly StoredCall[] {
    return this.#lines;
  }

  /** Adds lines that another instance collected but never wrote. */
  adopt(lines: readonly StoredCall[]): void {
    this.#calls += lines.length;
    for (const line of lines) this.#add(line);
  }

  get isDue(): boolean {
    if (this.#lines.length === 0 || this.#calls < CALLS_A_ROW) return false;
    return this.#isOwed || (this.#isFull && this.#rowsOfMinute < ROWS_A_MINUTE);
  }

  /** Logs the calls that the last event ended. */
  note({ over: ended }: DecisionLog, now: InstantMs): void {
    if (ended.length === 0) return;
    const config = this.#config();
    if (config.days === 0) return this.#drop();
    for (const decision of ended) {
      if (!isEnd(decision)) continue;
      this.#calls += 1;
      const why = keptFor(decision, config);
      if (why === null) continue;
      if (why === 'sample' && !this.#hasRoomForSample(config)) continue;
      this.#logged.add(decision);
      this.#add(lineOf(decision, why, now));
    }
  }

  /** Ends the minute, which makes its lines due. */
  endMinute(): void {
    this.#rowsOfMinute = 0;
    this.#samplesOfMinute = 0;
    this.#isOwed = true;
  }

  /**
   * Returns the lines to store with the bound of a pool that falls idle. If there were enough calls for a row, they are
   * left for it.
   */
  carry(): readonly StoredCall[] {
    if (this.#calls >= CALLS_A_ROW) {
      this.#isOwed = true;
      return [];
    }
    this.#isCarried = true;
    return this.#lines;
  }

  /** Writes a row if one is due. `isLast` means that no later write follows. */
  write(isLast = false): void {
    if (!this.isDue && !(isLast && this.hasUnkept)) return;
    this.#dropWritten();
    this.#isOwed = false;
    if (this.#lines.length === 0) return;
    this.#rows.write(this.#lines);
    this.#rowsOfMinute += 1;
    this.#drop();
  }

  /** Finds calls. A search for a name also finds remembered calls without a line. */
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
      .filter(matching(filter));
  }

  /**
   * Reserves room for a sampled line. One minute's samples are limited so that the rows last for all configured days.
   */
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

  /** Drops lines that the previous instance wrote to a row after it had stored them with the bound. */
  #dropWritten(): void {
    if (!this.#mayBeWritten) return;
    this.#mayBeWritten = false;
    const last = this.#rows.last();
    if (last === null) return;
    // Of the calls that ended in its last millisecond, some may not be in the row.
    const written = new Set(last.calls.map(({ lease }) => lease));
    this.#lines = this.#lines.filter(
      ({ at, lease }) => at > last.until || (at === last.until && !written.has(lease)),
    );
  }

  #drop(): void {
    this.#lines = [];
    this.#length = 0;
    this.#calls = 0;
    this.#mayBeWritten = false;
  }
}

/** Maximum rows that one search of a pool reads. The next search continues there. */
const ROWS_READ_MAX = 1_000;

/** Finds calls in rows, latest first. `unwritten` are the calls in no row yet, latest first. */
function searchCalls(
  filter: CallQuery,
  unwritten: readonly StoredCall[],
  rows: Iterable<CallRow>,
): CallsFound {
  const { fromMs, limit } = filter;
  const matches = matching(filter);
  const calls = unwritten.filter(matches);
  let doneTo = unwritten.at(-1)?.at ?? Infinity;
  let read = 0;
  for (const row of rows) {
    if (row.until < fromMs) break;
    const isEnough = calls.length >= limit || read >= ROWS_READ_MAX;
    // Calls of one instant are returned together, or the next search would miss some.
    if (isEnough && row.until < doneTo) return { calls, doneTo };
    read += 1;
    doneTo = Math.min(doneTo, row.at);
    calls.push(...row.calls.filter(matches).toReversed());
  }
  return { calls, doneTo: fromMs };
}

/** Shortens the texts of a query as they are shortened in lines. */
function asKept(query: CallQuery): CallQuery {
  const cut = Object.entries(query).map(([name, value]) => {
    if (Array.isArray(value)) return [name, value.map(keptText)];
    return [name, typeof value === 'string' ? keptText(value) : value];
  });
  return Object.fromEntries(cut) as CallQuery;
}

/** Returns texts of which at least one must occur in a row with a matching call. If empty, any row may match. */
function textsOf({ anyOf, leases, agent, tenant, key, model, requestId }: CallQuery): string[] {
  // The rarest field is used, because the others would match more rows.
  const wanted =
    leases ?? anyOf ?? one(requestId) ?? one(agent) ?? one(key) ?? one(tenant) ?? one(model);
  // Escaped as in JSON.
  return (wanted ?? []).map((text) => JSON.stringify(text).slice(1, -1));
}

function one(text: string | undefined): string[] | undefined {
  return text === undefined ? undefined : [text];
}

function matching(filter: CallQuery): (call: StoredCall) => boolean {
  const { fromMs, toMs, agent, tenant, key, model, requestId, outcome } = filter;
  const anyOf = filter.anyOf && new Set(filter.anyOf);
  const leases = filter.leases && new Set(filter.leases);
  return (call) => {
    if (call.at < fromMs || call.at >= toMs) return false;
    if (leases !== undefined && !namesLease(leases, call)) return false;
    if (anyOf !== undefined && !namesAny(anyOf, call)) return false;
    return (
      (agent === undefined || call.agent === agent) &&
      (tenant === undefined || call.tenant === tenant) &&
      (key === undefined || call.key === key) &&
      (model === undefined || call.model === model) &&
      (requestId === undefined || call.upstream_request_id === requestId) &&
      (outcome === undefined || call.outcome === outcome)
    );
  };
}

function namesLease(names: ReadonlySet<string>, { lease }: StoredCall): boolean {
  return names.has(lease) || names.has(ticketOf(lease as LeaseId));
}

function namesAny(names: ReadonlySet<string>, call: StoredCall): boolean {
  const { agent, tenant, key, model, upstream_request_id: requestId } = call;
  return (
    namesLease(names, call) ||
    [agent, tenant, key, model, requestId].some((name) => name !== undefined && names.has(name))
  );
}
