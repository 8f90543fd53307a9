import { useEffect, useRef } from 'preact/hooks';

/** Pages by the key that follows `g`, as on GitHub. */
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

/** Keys that move the focus to a part of the page, which carries its key in `data-jump`. */
const JUMP_TO: Readonly<Record<string, string>> = {
  l: 'Go to the first lease that can be released',
  w: 'Go to the first queued call',
};

/** Keyboard shortcuts: `/` focuses the search, `g` and a letter open a page, `?` lists all. */
export function KeysHelp() {
  const dialog = useRef<HTMLDialogElement>(null);
  const afterG = useRef(false);

  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isBusy(event.target)) return;
      const goTo = afterG.current ? GO_TO[event.key] : undefined;
      afterG.current = event.key === 'g' && !afterG.current;
      if (goTo !== undefined) {
        // Clicks the link, so that a page with unsaved input can ask first.
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
      <h2 id="keys-title">Keyboard shortcuts</h2>
      <dl class="keys">
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Find a call, agent, tenant, key or group</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>Show this list</dd>
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

/** Focuses the first enabled action in a list, or the list if there is none. */
function jumpTo(key: string): void {
  const list = document.querySelector<HTMLElement>(`[data-jump="${key}"]`);
  const first = list?.querySelector<HTMLElement>('button[data-focus]:enabled') ?? list;
  first?.focus({ preventScroll: true });
  list?.scrollIntoView({ block: 'center' });
}

/** Whether the focus is in a field or a dialog is open. */
function isBusy(target: EventTarget | null): boolean {
  if (document.querySelector('dialog[open]') !== null) return true;
  return target instanceof HTMLElement && target.matches('input, textarea, select');
}
