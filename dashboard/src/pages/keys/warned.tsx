import { useEffect, useRef, useState } from 'preact/hooks';
import type { Problem } from '../../api.ts';
import { isSame } from '../../model/document.ts';
import type { ChangePreview } from '../../model/effect.ts';
import { ChangeWarnings } from '../../ui/change-warnings.tsx';

type Previewed =
  | { readonly ok: true; readonly body: ChangePreview }
  | { readonly ok: false; readonly problem: Problem };

interface ChangeQuestion<Change> {
  /** Preview of the current change, if it has warnings to confirm. */
  readonly asked: ChangePreview | null;
  readonly isBusy: boolean;
  /** Previews the change. Resolves with true if it has no warnings. */
  readonly look: (change: Change) => Promise<boolean>;
  /** The same, but warnings that are already shown count as confirmed. */
  readonly mayMake: (change: Change) => Promise<boolean>;
}

/**
 * Asks before a change with warnings: the first click shows them, and the second one makes the change. If the change is
 * edited in between, it is previewed again.
 */
export function useWarned<Change>(
  change: Change | null,
  preview: (change: Change) => Promise<Previewed>,
  fail: (problem: Problem) => void,
): ChangeQuestion<Change> {
  const [looked, setLooked] = useState<{ of: Change; preview: ChangePreview } | null>(null);
  const [isBusy, setBusy] = useState(false);
  const isCurrent = looked !== null && looked.preview.warnings.length > 0;
  const asked = isCurrent && isSame(looked.of, change) ? looked.preview : null;

  const look = async (next: Change): Promise<boolean> => {
    setBusy(true);
    const result = await preview(next);
    setBusy(false);
    if (!result.ok) {
      fail(result.problem);
      return false;
    }
    setLooked({ of: next, preview: result.body });
    return result.body.warnings.length === 0;
  };
  return { asked, isBusy, look, mayMake: async (next) => asked !== null || look(next) };
}

/** Shows the warnings that the next click confirms. */
export function Warned(props: {
  readonly asked: ChangePreview | null;
  /** The key or team whose fallback price the change may set: `key:…` or `team:…`. */
  readonly group?: string;
  readonly onFree?: () => void;
}) {
  const { asked, ...free } = props;
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // In a long form, the warnings may be out of view.
    if (asked !== null) place.current?.scrollIntoView({ block: 'center' });
  }, [asked]);
  return (
    <div ref={place} role="alert">
      {asked !== null && (
        <div class="warned">
          <ChangeWarnings preview={asked} {...free} />
        </div>
      )}
    </div>
  );
}
