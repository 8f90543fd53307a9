import type { ComponentType } from 'preact';
import { lazy } from 'preact-iso';

/**
 * A page whose code is loaded when it is opened. A new version of Headgate has other files, so a page
 * that was open since before may find none: then it says so instead of doing nothing.
 */
export function loaded<Props>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  return lazy(() => load().catch((): ComponentType<Props> => NotLoaded));
}

function NotLoaded() {
  return (
    <>
      <h1>This page did not load</h1>
      <p>Headgate cannot be reached, or has been updated since this dashboard was opened.</p>
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </>
  );
}
