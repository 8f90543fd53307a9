import { useSignal, type ReadonlySignal, type Signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

const watched = new WeakMap<Element, Signal<boolean>>();

/** Shared by all elements. The margin makes elements visible slightly before they scroll into view. */
const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      const inSight = watched.get(target);
      if (inSight !== undefined) inSight.value = isIntersecting;
    }
  },
  { rootMargin: '200px' },
);

/** Whether an element is in view, or nearly. Elements out of view are not rendered every second. */
export function useInSight(root: RefObject<Element | null>): ReadonlySignal<boolean> {
  const inSight = useSignal(false);
  useEffect(() => {
    const thing = root.current;
    if (thing === null) return undefined;
    watched.set(thing, inSight);
    observer.observe(thing);
    return () => observer.unobserve(thing);
  }, [root, inSight]);
  return inSight;
}
