import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useEffect, useErrorBoundary } from 'preact/hooks';

/** Shows an error in place of a page that failed. The rest of the dashboard keeps working. */
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
      <p role="alert">{error instanceof Error ? error.message : 'The cause is unknown.'}</p>
      <p class="help">
        The page may be older than Headgate, or its address may be wrong. No data was changed.
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
