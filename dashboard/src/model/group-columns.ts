import { slotsTaken } from '../../../src/contract/status-words.ts';
import { refusedForLimits } from '../../../src/core/words/signal.ts';
import { STATES } from './group-state.ts';
import { slotsOfGroup } from './slots.ts';
import type { GroupView } from './status.ts';

interface GroupColumn {
  readonly id: string;
  readonly name: string;
  /** Short name, which fits before a number on a phone. */
  readonly short: string;
  /** Whether the column is numeric: aligned right, and sorted with the highest value first. */
  readonly isFigure: boolean;
  /** Sort key. null means unknown, which sorts last in both directions. */
  readonly of: (group: GroupView) => number | string | null;
}

export const COLUMNS = [
  { id: 'name', name: 'Group', short: '', isFigure: false, of: ({ name }) => name },
  // The most severe state sorts first.
  {
    id: 'state',
    name: 'State',
    short: '',
    isFigure: false,
    of: ({ state }) => STATES.indexOf(state),
  },
  { id: 'slots', name: 'In use', short: '', isFigure: true, of: (g) => slotsOfGroup(g).inUse },
  { id: 'queue', name: 'Queue', short: 'queue', isFigure: true, of: ({ queued }) => queued },
  { id: 'p95', name: 'Wait p95', short: 'p95', isFigure: true, of: (g) => g.wait_p95_ms },
  {
    id: 'rejected',
    name: 'Rejected in 1 h',
    short: 'rejected',
    isFigure: true,
    of: ({ last_hour: { rejected } }) => countOf(rejected),
  },
  {
    id: '429s',
    name: '429s in 1 h',
    short: '429s',
    isFigure: true,
    of: ({ last_hour: { refusals } }) => refusedForLimits(refusals),
  },
  {
    id: 'usd',
    name: '$ today (UTC)',
    short: '',
    isFigure: true,
    of: ({ spend }) => spend?.day_usd ?? null,
  },
] as const satisfies readonly GroupColumn[];

export type ColumnId = (typeof COLUMNS)[number]['id'];

export interface Sort {
  readonly by: ColumnId;
  readonly isReversed: boolean;
}

/** Parses the sort of a link, such as `usd`, or `-usd` for the lowest first. null if the column is unknown. */
export function sortOf(text: string | undefined): Sort | null {
  const isReversed = text?.startsWith('-') === true;
  const id = isReversed ? text.slice(1) : text;
  const column = COLUMNS.find((one) => one.id === id);
  return column === undefined ? null : { by: column.id, isReversed };
}

/** Next sort after a click on a column: its order, then the reverse, then none. */
export function nextSort(sort: Sort | null, id: ColumnId): string | undefined {
  if (sort?.by !== id) return id;
  return sort.isReversed ? undefined : `-${id}`;
}

export function ariaSort(
  sort: Sort | null,
  column: GroupColumn,
): 'ascending' | 'descending' | 'none' {
  if (sort?.by !== column.id) return 'none';
  return column.isFigure === sort.isReversed ? 'ascending' : 'descending';
}

/** Names of groups sorted by a column, then by name. */
export function byColumn(groups: readonly GroupView[], sort: Sort): readonly string[] {
  const column: GroupColumn | undefined = COLUMNS.find(({ id }) => id === sort.by);
  const sign = (column?.isFigure === true) === sort.isReversed ? 1 : -1;
  const keyed = groups.map((group) => ({ name: group.name, key: column?.of(group) ?? null }));
  return keyed
    .sort((a, b) => {
      if (a.key === null || b.key === null) {
        if (a.key !== b.key) return a.key === null ? 1 : -1;
      } else if (a.key !== b.key) {
        return sign * compare(a.key, b.key);
      }
      return compare(a.name, b.name);
    })
    .map(({ name }) => name);
}

/** Whether a group is idle: no calls in flight or queued, none in the last hour, and no cost today. */
export function isIdle(group: GroupView): boolean {
  const { state, queued, spend, last_hour: hour } = group;
  return (
    state === 'flowing' &&
    group.error === undefined &&
    slotsTaken(group) + queued === 0 &&
    hour.granted + countOf(hour.rejected) + countOf(hour.refusals) === 0 &&
    (spend?.day_usd ?? 0) === 0
  );
}

function compare(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  // Natural order: group-2 before group-10.
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}

function countOf(byName: Readonly<Record<string, number>>): number {
  return Object.values(byName).reduce((sum, count) => sum + count, 0);
}
