import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useEffect, useErrorBoundary } from 'preact/hooks';

/** A page, or word that it failed: the rest of the dashboard goes on, and so does another page. */
export function Guarded({ children }: { readonly children: ComponentChildren }) {
  const { path } = useLocation();
  const [error, reset] = useErrorBoundary() as readonly [unknown, () => void];
  useEffect(() => {
    if (error !== undefined) reset();
  }, [path]);
  if (error === undefined) return children;
  return (
    <>
      <h1>This page failed</h1>
      <p role="alert">
        {error instanceof Error ? error.message : 'For a reason that it did not give.'}
      </p>
      <p class="help">
        It may be older than Headgate, or the address may be wrong. Nothing was changed by that.
      </p>
      <p class="actions">
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
        <a class="button" href="/admin">
          All groups
        </a>
      </p>
    </>
  );
}
