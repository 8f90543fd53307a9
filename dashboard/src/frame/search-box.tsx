import { useLocation } from 'preact-iso';

/** The one box for everything that has a name: calls by their ids, agents, tenants, keys, models, and groups. */
export function SearchBox() {
  const { route } = useLocation();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const text = new FormData(event.currentTarget).get('q');
    if (typeof text !== 'string' || text.trim() === '') return;
    route(`/admin/calls?q=${encodeURIComponent(text.trim())}`);
  };
  return (
    <form class="search-box" role="search" aria-label="Everything" onSubmit={submit}>
      <input
        type="search"
        name="q"
        aria-label="Find a call, agent, tenant, key or group"
        placeholder="Find  /"
        spellcheck={false}
        autocomplete="off"
      />
    </form>
  );
}
