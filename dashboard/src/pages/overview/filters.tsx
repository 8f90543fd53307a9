import { isNarrow, KINDS, type GroupFilter } from '../../model/group-filter.ts';
import { STATES } from '../../model/group-state.ts';

interface FiltersProps {
  readonly filter: GroupFilter;
  /** Called with changes of the query. Empty values are removed from the link. */
  readonly onChange: (changed: Readonly<Record<string, string | undefined>>) => void;
}

export function Filters({ filter, onChange }: FiltersProps) {
  const { text, state, kind } = filter;
  const valueOf = (value: string): string | undefined => (value === 'all' ? undefined : value);
  return (
    <search class="filters">
      <input
        type="search"
        aria-label="Search groups"
        placeholder="Name, model or upstream"
        value={text}
        onInput={(event) => onChange({ q: event.currentTarget.value })}
        onKeyDown={(event) => event.key === 'Escape' && onChange({ q: undefined })}
      />
      <select
        aria-label="State"
        value={state}
        onChange={({ currentTarget }) => onChange({ state: valueOf(currentTarget.value) })}
      >
        <option value="all">any state</option>
        {STATES.map((one) => (
          <option value={one}>{one}</option>
        ))}
      </select>
      <select
        aria-label="Kind"
        value={kind}
        onChange={({ currentTarget }) => onChange({ kind: valueOf(currentTarget.value) })}
      >
        <option value="all">any kind</option>
        {KINDS.map((one) => (
          <option value={one}>{one}</option>
        ))}
      </select>
      {isNarrow(filter) && (
        <button
          type="button"
          class="quiet"
          onClick={() => onChange({ q: undefined, state: undefined, kind: undefined })}
        >
          Clear filters
        </button>
      )}
    </search>
  );
}
