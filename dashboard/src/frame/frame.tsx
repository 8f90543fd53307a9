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

/** Frame around every page: navigation, account, and whether the data is live. */
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
        Skip to content
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

/** The row of pages. On phones it scrolls to the current page, and fades on the sides that have more. */
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

/** On which sides a row has hidden content. undefined if all of it is visible. */
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
  live: 'Data is at most one second old',
  connecting: 'Data may be outdated until the server responds',
  offline: 'The server does not respond. Data may be outdated.',
  resting: 'Live updates are paused because this page is not in use',
} as const;

/** State of the feed in one word. The fixed width keeps its neighbours in place. */
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
  const { actor, role } = session.value.user;
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
