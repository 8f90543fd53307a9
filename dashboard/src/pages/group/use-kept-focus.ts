import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

/**
 * Keeps the focus of whoever works in a list with the keyboard while its rows come, go and change
 * places: at the same thing (named by `data-focus`), or where that is gone, at the list. Never at what
 * took its place: a key that was about to be pressed would hit somebody else's call.
 */
export function useKeptFocus(root: RefObject<HTMLElement | null>): void {
  const had = useRef<string | null>(null);

  useEffect(() => {
    const list = root.current;
    const enter = ({ target }: FocusEvent): void => {
      had.current = target instanceof HTMLElement ? (target.dataset['focus'] ?? null) : null;
    };
    // A thing that is taken out loses its focus too, and a dialog gives it back: neither is leaving.
    const leave = ({ relatedTarget }: FocusEvent): void => {
      if (!(relatedTarget instanceof Element)) return;
      if (relatedTarget.closest('dialog') === null) had.current = null;
    };
    list?.addEventListener('focusin', enter);
    list?.addEventListener('focusout', leave);
    return () => {
      list?.removeEventListener('focusin', enter);
      list?.removeEventListener('focusout', leave);
    };
  }, [root]);

  useLayoutEffect(() => {
    if (had.current === null || document.activeElement !== document.body) return;
    const things = root.current?.querySelectorAll<HTMLElement>('[data-focus]') ?? [];
    const same = [...things].find(({ dataset }) => dataset['focus'] === had.current);
    (same ?? root.current)?.focus({ preventScroll: true });
  });
}
