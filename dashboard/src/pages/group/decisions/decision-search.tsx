import { useQuery } from '../../../ui/use-query.ts';

const OUTCOMES = [
  { id: '', name: 'any' },
  { id: 'granted', name: 'granted' },
  { id: 'rejected', name: 'rejected' },
  { id: 'left', name: 'caller left' },
  { id: 'moved', name: 'routed again' },
];

/** Searches calls by the `headgate-lease` header of the response, or by outcome. The link contains the search. */
export function DecisionSearch() {
  const [query, setQuery] = useQuery();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const fields = new FormData(event.currentTarget);
    const values = Object.fromEntries(
      [...fields].map(([key, value]) => [key, typeof value === 'string' ? value.trim() : '']),
    );
    setQuery(values);
  };
  const isNarrowed = ['lease', 'outcome'].some((key) => key in query);
  return (
    <form class="decision-search" onSubmit={submit} role="search" aria-label="Decisions">
      <label class="lease">
        headgate-lease of the response
        <input
          type="search"
          name="lease"
          value={query['lease'] ?? ''}
          placeholder="5f0c….1"
          spellcheck={false}
        />
      </label>
      <div class="labelled">
        <label for="decision-outcome">Outcome</label>
        <select id="decision-outcome" name="outcome" value={query['outcome'] ?? ''}>
          {OUTCOMES.map(({ id, name }) => (
            <option value={id}>{name}</option>
          ))}
        </select>
      </div>
      <button type="submit" class="primary">
        Find
      </button>
      {isNarrowed && (
        <button type="reset" onClick={() => setQuery({ lease: '', outcome: '' })}>
          Clear search
        </button>
      )}
    </form>
  );
}
