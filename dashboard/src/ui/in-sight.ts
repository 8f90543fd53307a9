import { useSignal, type ReadonlySignal, type Signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

const watched = new WeakMap<Element, Signal<boolean>>();

/** One for all; begins a little before a thing can be seen. */
const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      const inSight = watched.get(target);
      if (inSight !== undefined) inSight.value = isIntersecting;
    }
  },
  { rootMargin: '200px' },
);

/** Whether a thing is in sight, or nearly: what is not need not be drawn each second. */
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
