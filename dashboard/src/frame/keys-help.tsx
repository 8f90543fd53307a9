import { useEffect, useRef } from 'preact/hooks';

/** Two keys after another lead to a page, as on GitHub. */
const GO_TO: Readonly<Record<string, { readonly href: string; readonly name: string }>> = {
  g: { href: '/admin', name: 'Groups' },
  u: { href: '/admin/upstreams', name: 'Upstreams' },
  t: { href: '/admin/tester', name: 'Tester' },
  k: { href: '/admin/keys', name: 'Keys' },
  m: { href: '/admin/costs', name: 'Costs (money)' },
  l: { href: '/admin/calls', name: 'Calls' },
  a: { href: '/admin/audit', name: 'Audit' },
  c: { href: '/admin/config', name: 'Import / export' },
  s: { href: '/admin/setup', name: 'Set-up' },
};

/** Keys that lead to a part of the page, which names its key in `data-jump`. */
const JUMP_TO: Readonly<Record<string, string>> = {
  l: 'Leases: the first that can be released',
  w: 'Waiters: the first in the queue',
};

/** The keyboard: `/` goes to the search, `g` and a letter to a page, `?` shows this list. */
export function KeysHelp() {
  const dialog = useRef<HTMLDialogElement>(null);
  const afterG = useRef(false);

  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isBusy(event.target)) return;
      const goTo = afterG.current ? GO_TO[event.key] : undefined;
      afterG.current = event.key === 'g' && !afterG.current;
      if (goTo !== undefined) {
        // As by hand, so that a page that holds something unsaved can ask first.
        document.querySelector<HTMLAnchorElement>(`nav a[href="${goTo.href}"]`)?.click();
      } else if (event.key === '?') {
        dialog.current?.showModal();
      } else if (event.key === '/') {
        const search = document.querySelector<HTMLInputElement>('input[type=search]');
        if (search === null) return;
        event.preventDefault();
        search.focus();
      } else if (event.key in JUMP_TO) {
        jumpTo(event.key);
      }
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);

  return (
    <dialog ref={dialog} aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <dl class="keys">
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Find a call, agent, tenant, key or group</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>This list</dd>
        {Object.entries(JUMP_TO).map(([key, says]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{says}</dd>
          </>
        ))}
        {Object.entries(GO_TO).map(([key, { name }]) => (
          <>
            <dt>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{name}</dd>
          </>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

/** Goes to the first thing in a list that can be done, or to the list where nothing can. */
function jumpTo(key: string): void {
  const list = document.querySelector<HTMLElement>(`[data-jump="${key}"]`);
  const first = list?.querySelector<HTMLElement>('button[data-focus]:enabled') ?? list;
  first?.focus({ preventScroll: true });
  list?.scrollIntoView({ block: 'center' });
}

/** Somebody types, or a dialog waits for an answer. */
function isBusy(target: EventTarget | null): boolean {
  if (document.querySelector('dialog[open]') !== null) return true;
  return target instanceof HTMLElement && target.matches('input, textarea, select');
}
