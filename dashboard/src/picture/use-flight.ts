import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

/**
 * How long a mark flies: long enough to be followed, shorter than the time to the next word of the feed.
 */
const FLIGHT_MS = 450;

/**
 * Lets whatever has a `data-flight` move from where it was drawn before to where it is now: a waiter
 * that is granted flies into its slot, those behind it move up. With reduced motion nothing moves.
 */
export function useFlight(root: RefObject<HTMLElement | null>): void {
  const before = useRef<ReadonlyMap<string, Rectangle>>(new Map());
  useLayoutEffect(() => {
    if (root.current === null) return;
    const isStill = document.hidden || matchMedia('(prefers-reduced-motion: reduce)').matches;
    const places = new Map<string, Rectangle>();
    // Where things are laid out, not where a flight that still goes on has them; read before any moves.
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
