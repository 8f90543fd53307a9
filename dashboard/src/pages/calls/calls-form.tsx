import { OUTCOMES } from '../../model/found-call.ts';
import { useQuery } from '../../ui/use-query.ts';

/** Search form for calls. The link contains the search. */
export function CallsForm() {
  const [query, setQuery] = useQuery();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const fields = new FormData(event.currentTarget);
    setQuery(
      Object.fromEntries(
        [...fields].map(([key, value]) => [key, typeof value === 'string' ? value.trim() : '']),
      ),
    );
  };
  return (
    <form class="decision-search" onSubmit={submit} role="search" aria-label="Calls">
      <label class="lease">
        Lease, agent, tenant, key, model or the upstream’s request id
        <input
          type="search"
          name="q"
          value={query['q'] ?? ''}
          placeholder="headgate-lease of a response, req_…, agent run"
          spellcheck={false}
        />
      </label>
      <label>
        Group
        <input name="group" value={query['group'] ?? ''} spellcheck={false} />
      </label>
      <div class="labelled">
        <label for="calls-outcome">Outcome</label>
        <select id="calls-outcome" name="outcome" value={query['outcome'] ?? ''}>
          <option value="">any</option>
          {Object.entries(OUTCOMES).map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <button type="submit" class="primary">
        Find
      </button>
    </form>
  );
}
