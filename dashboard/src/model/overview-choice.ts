import { sortOf, type Sort } from './group-columns.ts';
import { KINDS, NO_FILTER, type GroupFilter } from './group-filter.ts';
import { STATES } from './group-state.ts';

export interface OverviewChoice {
  readonly filter: GroupFilter;
  /** null means that the number of groups decides. */
  readonly view: 'cards' | 'table' | null;
  /** null means the most urgent first. */
  readonly sort: Sort | null;
  readonly isIdleShown: boolean;
}

/** Reads a link. Unknown values are ignored. */
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
