import type { InstantMs } from '../words/ids.ts';

/** Sums over calls with a known use. */
export interface CostSums {
  readonly usd: number;
  /** All input tokens, including cached ones. */
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly calls: number;
  /** Calls with an unknown price. Their tokens count, and their cost is 0. */
  readonly unpriced: number;
  /** Calls that were queued first. */
  readonly waited: number;
  /**
   * Calls whose use the provider did not report. They count no tokens. Absent if there are none.
   */
  readonly unreported?: number;
}

interface Charged {
  readonly key: string | null;
  /** The team of the key at the time of the call. */
  readonly team: string | null;
  readonly model: string | null;
}

/** The reported use of calls of one key without a reservation. */
export interface ReportedCost extends CostSums, Omit<Charged, 'key'> {}

export interface CostLine extends CostSums, Charged {}

/** Costs by key, team and model, with one sum for everything that has no line of its own. */
export interface CostTable {
  readonly lines: readonly CostLine[];
  /** null if everything has a line. */
  readonly rest: CostSums | null;
}

/** The table of one UTC day, by its number since 1970. */
export interface DayCosts extends CostTable {
  readonly day: number;
}

/** The costs of a pool: the current day, and completed days that have no row of their own yet. */
export interface Costs {
  today: Writable | null;
  closed: DayCosts[];
}

interface Writable {
  readonly day: number;
  readonly lines: CostLine[];
  rest: CostSums | null;
}

export interface CalledFor
  extends Omit<CostSums, 'calls' | 'unpriced' | 'waited' | 'unreported'>, Charged {
  readonly isUnpriced: boolean;
  /** The provider reported no use. Absent if it did, or if an estimate counts. */
  readonly isUnreported?: boolean;
  readonly hasWaited: boolean;
}

/** Maximum number of lines, one per key, team and model. */
export const COST_LINES_MAX = 200;

export const DAY_MS = 86_400_000;

export const NO_COSTS: CostSums = {
  usd: 0,
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  calls: 0,
  unpriced: 0,
  waited: 0,
};

export function emptyCosts(): Costs {
  return { today: null, closed: [] };
}

/** Returns the number of the UTC day of an instant. */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS);
}

/** Counts a call on the day on which it ended. A clock that was set back does not return to the previous day. */
export function noteCost(costs: Costs, call: CalledFor, now: InstantMs): void {
  const { key, team, model, isUnpriced, isUnreported = false, hasWaited, ...used } = call;
  const sums = {
    ...used,
    calls: 1,
    unpriced: isUnpriced ? 1 : 0,
    waited: hasWaited ? 1 : 0,
    ...(isUnreported && { unreported: 1 }),
  };
  addToLine(costs, { key, team, model }, sums, now);
}

/** Counts calls of a key whose use their isolate has added up. */
export function noteReportedCost(
  costs: Costs,
  key: string,
  { team, model, ...sums }: ReportedCost,
  now: InstantMs,
): void {
  addToLine(costs, { key, team, model }, sums, now);
}

function addToLine(
  costs: Costs,
  { key, team, model }: Charged,
  sums: CostSums,
  now: InstantMs,
): void {
  const table = openDay(costs, dayOf(now));
  const at = table.lines.findIndex(
    (line) => line.key === key && line.team === team && line.model === model,
  );
  const line = table.lines[at];
  if (line !== undefined) table.lines[at] = { key, team, model, ...addSums(line, sums) };
  else if (table.lines.length < COST_LINES_MAX) table.lines.push({ key, team, model, ...sums });
  else table.rest = addSums(table.rest ?? NO_COSTS, sums);
}

/** Adds all costs of another pool to today's table. */
export function addCosts(costs: Costs, { today, closed }: Costs, now: InstantMs): void {
  const added = today === null ? closed : [...closed, today];
  if (added.length === 0) return;
  const table = openDay(costs, dayOf(now));
  const { lines, rest } = joinCosts([table, ...added]);
  costs.today = { day: table.day, lines: [...lines], rest };
}

/** Removes and returns the completed days, for rows of their own. */
export function takeClosed(costs: Costs): readonly DayCosts[] {
  return costs.closed.splice(0);
}

/**
 * Adds tables up. Beyond the maximum number of lines, the cheapest ones are added to the rest, so the sums stay
 * correct.
 */
export function joinCosts(tables: readonly CostTable[]): CostTable {
  const [first, second] = tables;
  if (first !== undefined && second === undefined) return first;
  const byPair = new Map<string, CostLine>();
  for (const line of tables.flatMap(({ lines }) => lines)) {
    const { key, team, model } = line;
    const pair = JSON.stringify([key, team, model]);
    const known = byPair.get(pair);
    byPair.set(pair, known === undefined ? line : { key, team, model, ...addSums(known, line) });
  }
  const all = [...byPair.values()].toSorted((a, b) => b.usd - a.usd || b.calls - a.calls);
  const folded = [...tables.flatMap(({ rest }) => rest ?? []), ...all.slice(COST_LINES_MAX)];
  return {
    lines: all.slice(0, COST_LINES_MAX),
    rest: folded.length === 0 ? null : folded.reduce<CostSums>(addSums, NO_COSTS),
  };
}

export function totalOf({ lines, rest }: CostTable): CostSums {
  return lines.reduce<CostSums>(addSums, rest ?? NO_COSTS);
}

export function addSums(a: CostSums, b: CostSums): CostSums {
  const unreported = (a.unreported ?? 0) + (b.unreported ?? 0);
  return {
    usd: a.usd + b.usd,
    inputTokens: a.inputTokens + b.inputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    calls: a.calls + b.calls,
    unpriced: a.unpriced + b.unpriced,
    waited: a.waited + b.waited,
    ...(unreported > 0 && { unreported }),
  };
}

/** Returns the table of a day, and closes the previous one. */
function openDay(costs: Costs, day: number): Writable {
  const open = costs.today;
  if (open !== null && open.day >= day) return open;
  if (open !== null) costs.closed.push(open);
  costs.today = { day, lines: [], rest: null };
  return costs.today;
}
