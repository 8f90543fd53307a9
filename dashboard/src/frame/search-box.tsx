import { useLocation } from 'preact-iso';

/** Search for calls by id, and for agents, tenants, keys, models and groups by name. */
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
    <form class="search-box" role="search" aria-label="Search everything" onSubmit={submit}>
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
