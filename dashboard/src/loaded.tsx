import type { ComponentType } from 'preact';
import { lazy } from 'preact-iso';

/**
 * A page whose code loads when it is opened. A new version of Headgate has other files, so the code of an older page
 * may be missing. The page then shows an error.
 */
export function loaded<Props>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  return lazy(() => load().catch((): ComponentType<Props> => NotLoaded));
}

function NotLoaded() {
  return (
    <>
      <h1>This page did not load</h1>
      <p>Headgate is unreachable, or was updated after you opened this dashboard.</p>
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </>
  );
}
