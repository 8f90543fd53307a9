import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useEffect, useRef, useState } from 'preact/hooks';
import { closeFeed, isStale, liveness, openFeed } from '../feed.ts';
import icon from '../icon.svg';
import { decoded } from '../model/decoded.ts';
import { session, signOut } from '../session.ts';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { Toasts } from '../ui/toasts.tsx';
import { EverythingPaused } from './everything-paused.tsx';
import { Guarded } from './guarded.tsx';
import { KeysHelp } from './keys-help.tsx';
import { SearchBox } from './search-box.tsx';
import { StillLooking } from './still-looking.tsx';

const PAGES = [
  { href: '/admin', name: 'Groups' },
  { href: '/admin/upstreams', name: 'Upstreams' },
  { href: '/admin/tester', name: 'Tester' },
  { href: '/admin/keys', name: 'Keys' },
  { href: '/admin/costs', name: 'Costs' },
  { href: '/admin/calls', name: 'Calls' },
  { href: '/admin/audit', name: 'Audit' },
  { href: '/admin/config', name: 'Import / export' },
  { href: '/admin/setup', name: 'Set-up' },
] as const;

/** Frame around every page: where to go, who is signed in, and whether what is shown is live. */
export function Frame({ children }: { readonly children: ComponentChildren }) {
  const { path } = useLocation();
  const [, group, isEdited] = /^\/admin\/groups\/([^/]+)(\/edit)?$/.exec(path) ?? [];
  const name = group === undefined ? null : decoded(group);
  const shown = isEdited === undefined ? name : null;
  const hasEnded = session.value.state === 'signed_in' && session.value.hasEnded;
  useEffect(() => (hasEnded ? closeFeed() : openFeed(shown)), [shown, hasEnded]);
  useEffect(() => closeFeed, []);
  useEffect(() => {
    const about = name ?? PAGES.findLast(({ href }) => isAt(path, href))?.name ?? 'Dashboard';
    document.title = `${about} · Headgate`;
  }, [name, path]);
  return (
    <>
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <header class="frame">
        <a class="brand" href="/admin">
          <img src={icon} alt="" width="20" height="20" /> Headgate
        </a>
        <Navigation path={path} />
        <SearchBox />
        <LiveBadge />
        <Account />
      </header>
      <EverythingPaused />
      <main id="page" tabIndex={-1} class={isStale.value ? 'stale' : undefined}>
        <Guarded>{children}</Guarded>
      </main>
      <Toasts />
      <ConfirmDialog />
      <KeysHelp />
      <StillLooking />
    </>
  );
}

/** Wider than a phone, so it scrolls there: to where one is. It fades towards where there is more. */
function Navigation({ path }: { readonly path: string }) {
  const nav = useRef<HTMLElement>(null);
  const [more, setMore] = useState<string | undefined>();
  const look = (): void => setMore(nav.current === null ? undefined : beyond(nav.current));
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
    look();
    window.addEventListener('resize', look);
    return () => window.removeEventListener('resize', look);
  }, [path]);
  return (
    <nav aria-label="Pages" ref={nav} data-more={more} onScroll={look}>
      {PAGES.map(({ href, name }) => (
        <a href={href} aria-current={isAt(path, href) ? 'page' : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

/** Tells on which sides of a row there is more than can be seen. Undefined: all of it can. */
function beyond({ scrollLeft, clientWidth, scrollWidth }: HTMLElement): string | undefined {
  const left = scrollLeft > 1 ? 'left' : '';
  const right = scrollLeft + clientWidth < scrollWidth - 1 ? 'right' : '';
  return `${left} ${right}`.trim() || undefined;
}

function isAt(path: string, href: string): boolean {
  if (href === '/admin') {
    const below = ['/admin', '/admin/new', '/admin/several'];
    return below.includes(path) || path.startsWith('/admin/groups');
  }
  return path.startsWith(href);
}

const SAYS = {
  live: 'What is shown is a second old at the most',
  connecting: 'What is shown may be old until the server answers',
  offline: 'The server is silent: what is shown may be old',
  resting: 'Nothing is followed until somebody looks again',
} as const;

/** One short word in a place of one width: nothing beside it moves when it changes. */
function LiveBadge() {
  const state = liveness.value;
  return (
    <span class={`badge ${state}`} role="status" title={SAYS[state]}>
      {state}
    </span>
  );
}

function Account() {
  if (session.value.state !== 'signed_in') return null;
  const { actor, role } = session.value.who;
  return (
    <span class="account">
      <span title={`Signed in as ${actor}`}>
        {actor} <small>{role}</small>
      </span>
      <button type="button" class="quiet" onClick={() => void signOut()}>
        Sign out
      </button>
    </span>
  );
}
