import { useLocation } from 'preact-iso';
import { useEffect } from 'preact/hooks';
import { confirm } from './confirm.tsx';

const QUESTION = {
  title: 'Leave without saving?',
  says: 'Your changes are not applied yet and will be lost.',
  verb: 'Leave',
};

interface GuardedPage {
  readonly url: string;
  readonly route: (target: string) => void;
}

let guarded: GuardedPage | null = null;

// Registered at start-up, because listeners on `window` run in order of registration, and this one must precede the
// router.
addEventListener('click', (event) => {
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (guarded === null || link === null || !leads(link, event)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  askToLeave(guarded, link.pathname + link.search);
});
addEventListener('popstate', (event) => {
  if (guarded === null) return;
  event.stopImmediatePropagation();
  const target = location.pathname + location.search;
  history.pushState(null, '', guarded.url);
  askToLeave(guarded, target);
});
addEventListener('beforeunload', (event) => {
  if (guarded !== null) event.preventDefault();
});

/** Asks before unsaved input is lost by a link, by going back or by closing the page. */
export function useLeaveGuard(hasChanges: boolean): void {
  const { route, url } = useLocation();
  useEffect(() => {
    if (!hasChanges) return undefined;
    guarded = { url, route };
    return () => {
      guarded = null;
    };
  }, [hasChanges, route, url]);
}

/** Whether a click on a link opens another page of the dashboard in this tab. */
function leads(link: HTMLAnchorElement, event: MouseEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return false;
  if (link.target !== '' || link.hasAttribute('download')) return false;
  return link.origin === location.origin && link.pathname !== location.pathname;
}

function askToLeave({ route }: GuardedPage, target: string): void {
  confirm(QUESTION).then(
    (isSure) => {
      if (isSure) route(target);
    },
    () => undefined,
  );
}
