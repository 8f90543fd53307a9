import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

/**
 * Keeps the keyboard focus while the rows of a list change. It stays on the same control, named by `data-focus`. If
 * that is gone, the list gets the focus, never the control in its place: the next key press would affect another
 * call.
 */
export function useKeptFocus(root: RefObject<HTMLElement | null>): void {
  const had = useRef<string | null>(null);

  useEffect(() => {
    const list = root.current;
    const enter = ({ target }: FocusEvent): void => {
      had.current = target instanceof HTMLElement ? (target.dataset['focus'] ?? null) : null;
    };
    // Removed controls lose the focus too, and dialogs return it. Neither counts as leaving the list.
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
