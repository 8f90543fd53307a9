import { sortOf, type Sort } from './group-columns.ts';
import { KINDS, NO_FILTER, type GroupFilter } from './group-filter.ts';
import { STATES } from './group-state.ts';

/** Choice of groups and of how to see them, as the link of the page has it. */
export interface OverviewChoice {
  readonly filter: GroupFilter;
  /** Null: whatever suits their number. */
  readonly view: 'cards' | 'table' | null;
  /** Null: the most pressed first. */
  readonly sort: Sort | null;
  /** Idle groups are shown one by one. */
  readonly isIdleShown: boolean;
}

/** Reads the link. What it does not know counts as not said. */
export function overviewChoice(query: Readonly<Record<string, string>>): OverviewChoice {
  const { q = '', state, kind, view, sort, idle } = query;
  return {
    filter: {
      text: q,
      state: STATES.find((one) => one === state) ?? NO_FILTER.state,
      kind: KINDS.find((one) => one === kind) ?? NO_FILTER.kind,
    },
    view: view === 'cards' || view === 'table' ? view : null,
    sort: sortOf(sort),
    isIdleShown: idle === 'shown',
  };
}
