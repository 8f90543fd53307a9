import { useEffect, useState } from 'preact/hooks';
import { returns } from '../../feed.ts';
import type * as Parts from './past.ts';

type PastSections = typeof Parts;

/** Charts, warnings and decisions of a group, as soon as their code is there. It is tried again when the feed is back. */
export function PastSections({ name }: { readonly name: string }) {
  const [past, setPast] = useState<PastSections | null>(null);
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    import('./past.ts').then(setPast, () => setFailed(true));
  }, [hasFailed && returns.value]);
  if (past !== null) {
    return (
      <>
        <past.GroupCharts name={name} />
        <past.GroupWarnings name={name} />
        <past.Decisions name={name} />
      </>
    );
  }
  return (
    <section class="past" aria-busy={!hasFailed}>
      {hasFailed && (
        <p role="alert">
          The charts and the decisions could not be loaded. They come when Headgate answers again.
        </p>
      )}
    </section>
  );
}
