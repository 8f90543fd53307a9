import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** Lets a thing grow, but not shrink again, so that what stands below does not move up and down. */
export function useKeptHeight(root: RefObject<HTMLElement | null>): void {
  const width = useRef(0);
  useLayoutEffect(() => {
    const thing = root.current;
    if (thing === null) return;
    // At another width everything is laid out anew.
    if (thing.offsetWidth !== width.current) thing.style.minHeight = '';
    width.current = thing.offsetWidth;
    thing.style.minHeight = `${thing.offsetHeight}px`;
  });
}
