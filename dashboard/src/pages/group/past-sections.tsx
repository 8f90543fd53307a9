import { useEffect, useState } from 'preact/hooks';
import { returns } from '../../feed.ts';
import type * as Parts from './past.ts';

type PastSections = typeof Parts;

/** Figures and history of a group. Their code loads separately, and again when the feed reconnects. */
export function PastSections({ name }: { readonly name: string }) {
  const [past, setPast] = useState<PastSections | null>(null);
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    import('./past.ts').then(setPast, () => setFailed(true));
  }, [hasFailed && returns.value]);
  if (past !== null) {
    return (
      <>
        <past.GroupFigures name={name} />
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
          Figures, charts and decisions could not be loaded. They load when Headgate responds again.
        </p>
      )}
    </section>
  );
}
