import type { Signal } from '@preact/signals';
import { STATES } from '../../model/group-state.ts';
import { NO_FILTER, type GroupFilter } from '../../model/group-filter.ts';

const KINDS = ['configured', 'automatic', 'key', 'team', 'retired'] as const;

/** Filters of the list: words, a state, a kind. */
export function Filters({ filter }: { readonly filter: Signal<GroupFilter> }) {
  const { text, state, kind } = filter.value;
  const set = (part: Partial<GroupFilter>): void => {
    filter.value = { ...filter.value, ...part };
  };
  return (
    <search class="filters">
      <input
        type="search"
        aria-label="Search groups"
        placeholder="Name, model or upstream"
        value={text}
        onInput={(event) => set({ text: event.currentTarget.value })}
        onKeyDown={(event) => event.key === 'Escape' && set({ text: '' })}
      />
      <select
        aria-label="State"
        value={state}
        onChange={({ currentTarget }) =>
          set({ state: STATES.find((one) => one === currentTarget.value) ?? 'all' })
        }
      >
        <option value="all">any state</option>
        {STATES.map((one) => (
          <option value={one}>{one}</option>
        ))}
      </select>
      <select
        aria-label="Kind"
        value={kind}
        onChange={({ currentTarget }) =>
          set({ kind: KINDS.find((one) => one === currentTarget.value) ?? 'all' })
        }
      >
        <option value="all">any kind</option>
        {KINDS.map((one) => (
          <option value={one}>{one}</option>
        ))}
      </select>
      {filter.value !== NO_FILTER && (
        <button type="button" class="quiet" onClick={() => (filter.value = NO_FILTER)}>
          Show all
        </button>
      )}
    </search>
  );
}
