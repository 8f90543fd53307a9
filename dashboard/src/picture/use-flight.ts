import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

/** Duration of a flight: long enough to follow, and shorter than the interval of the feed. */
const FLIGHT_MS = 450;

/**
 * Animates elements with `data-flight` from their previous position to the current one: a granted call flies into its
 * slot, and the calls behind it move up. With reduced motion nothing moves.
 */
export function useFlight(root: RefObject<HTMLElement | null>): void {
  const before = useRef<ReadonlyMap<string, Rectangle>>(new Map());
  useLayoutEffect(() => {
    if (root.current === null) return;
    const isStill = document.hidden || matchMedia('(prefers-reduced-motion: reduce)').matches;
    const places = new Map<string, Rectangle>();
    // Layout positions, not those of running animations. All are read before any element moves.
    const things = [...root.current.querySelectorAll<HTMLElement>('[data-flight]')].map((thing) => {
      const place = { x: thing.offsetLeft, y: thing.offsetTop, width: thing.offsetWidth };
      places.set(thing.dataset['flight'] ?? '', place);
      return { thing, place };
    });
    for (const { thing, place } of isStill ? [] : things) {
      const was = before.current.get(thing.dataset['flight'] ?? '');
      if (was === undefined || (was.x === place.x && was.y === place.y)) continue;
      const from = `translate(${was.x - place.x}px, ${was.y - place.y}px) scale(${was.width / place.width})`;
      thing.animate([{ transform: from }, { transform: 'none' }], {
        duration: FLIGHT_MS,
        easing: 'ease-out',
      });
    }
    before.current = places;
  });
}
