import type { InstantMs } from '../words/ids.ts';

/** Sums of calls whose use is known. */
export interface CostSums {
  readonly usd: number;
  /** All input, what was read from a cache among it. */
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly calls: number;
  /** Calls whose price nobody knows: they are in the tokens, and cost nothing here. */
  readonly unpriced: number;
  /** Calls that had to wait in the queue first. */
  readonly waited: number;
  /** Calls of whose use the provider reported nothing: they count no tokens. Absent: none, or an older release counted. */
  readonly unreported?: number;
}

/** Those who a call is charged to, and what it called. */
interface Charged {
  readonly key: string | null;
  /** The team that the key had at the call: it may have another one since, or be gone. */
  readonly team: string | null;
  readonly model: string | null;
}

/** The reported use of calls of one key for which nothing was reserved. */
export interface ReportedCost extends CostSums, Omit<Charged, 'key'> {}

/** The sums of one key and one model. */
export interface CostLine extends CostSums, Charged {}

/** A table of costs, by key, its team and model, and the sum of what found no line of its own in it. */
export interface CostTable {
  readonly lines: readonly CostLine[];
  /** Null: everything has its line. */
  readonly rest: CostSums | null;
}

/** The table of one day of UTC, by its number since 1970. */
export interface DayCosts extends CostTable {
  readonly day: number;
}

/** The costs of a pool: the day that is open, and those that are over and in no row of their own yet. */
export interface Costs {
  today: Writable | null;
  closed: DayCosts[];
}

interface Writable {
  readonly day: number;
  readonly lines: CostLine[];
  rest: CostSums | null;
}

/** The use of one call. */
export interface CalledFor
  extends Omit<CostSums, 'calls' | 'unpriced' | 'waited' | 'unreported'>, Charged {
  readonly isUnpriced: boolean;
  /** The provider reported no use. Absent: it did, or an estimate counts. */
  readonly isUnreported?: boolean;
  readonly hasWaited: boolean;
}

/** Maximum pairs of a key, in its team, and a model that have a line of their own. */
export const COST_LINES_MAX = 200;

export const DAY_MS = 86_400_000;

/** The sums of no calls. */
export const NO_COSTS: CostSums = {
  usd: 0,
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  calls: 0,
  unpriced: 0,
  waited: 0,
};

/** The costs of a pool that has not served a call. */
export function emptyCosts(): Costs {
  return { today: null, closed: [] };
}

/** Numbers the day of UTC of an instant. */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS);
}

/** Counts a call, in the day in which it ended. A clock that went back is still in the day that it was in. */
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

/** Counts all costs of another table beside these, as of today. */
export function addCosts(costs: Costs, { today, closed }: Costs, now: InstantMs): void {
  const added = today === null ? closed : [...closed, today];
  if (added.length === 0) return;
  const table = openDay(costs, dayOf(now));
  const { lines, rest } = joinCosts([table, ...added]);
  costs.today = { day: table.day, lines: [...lines], rest };
}

/** Takes the days that are over, to be written in rows of their own. */
export function takeClosed(costs: Costs): readonly DayCosts[] {
  return costs.closed.splice(0);
}

/** Adds tables up. Beyond the most lines those of the least cost are in the rest, so the sums stay what they are. */
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

/** Adds up all of a table. */
export function totalOf({ lines, rest }: CostTable): CostSums {
  return lines.reduce<CostSums>(addSums, rest ?? NO_COSTS);
}

/** Adds one sum to another. */
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

/** Finds the table of a day, and closes the one before it. */
function openDay(costs: Costs, day: number): Writable {
  const open = costs.today;
  if (open !== null && open.day >= day) return open;
  if (open !== null) costs.closed.push(open);
  costs.today = { day, lines: [], rest: null };
  return costs.today;
}
