import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** Lets an element grow but not shrink, so that content below does not move up and down. */
export function useKeptHeight(root: RefObject<HTMLElement | null>): void {
  const width = useRef(0);
  useLayoutEffect(() => {
    const thing = root.current;
    if (thing === null) return;
    // A new width changes the whole layout, so the height starts over.
    if (thing.offsetWidth !== width.current) thing.style.minHeight = '';
    width.current = thing.offsetWidth;
    thing.style.minHeight = `${thing.offsetHeight}px`;
  });
}
