import { signal, useSignal, useSignalEffect, type ReadonlySignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { api } from '../../api.ts';
import { groups, now, trendOf, version } from '../../feed.ts';
import { isSought, type GroupFilter } from '../../model/group-filter.ts';
import { byPressure, keepOrder } from '../../model/order.ts';

/** Minimum time between two moves of cards. */
const SORT_MS_MIN = 5_000;

/** How long a pointer must not have moved over the list to count as forgotten there. */
const POINTER_MS = 15_000;

/** Models and upstreams that each configured group names, so that a search finds it by them. */
const matches = signal<ReadonlyMap<string, readonly string[]>>(new Map());

/**
 * Names of the groups that are looked for, the most pressed first. Nothing moves while somebody points
 * at the list or has its focus in there; what is gone goes at once.
 */
export function useOrder(
  filter: ReadonlySignal<GroupFilter>,
  list: RefObject<HTMLElement | null>,
): ReadonlySignal<readonly string[]> {
  const order = useSignal<readonly string[]>([]);
  const sorted = useRef<{ at: number; by: GroupFilter | null }>({ at: 0, by: null });
  const pointedAt = useRef(0);

  useEffect(() => {
    const point = (): void => {
      pointedAt.current = Date.now();
    };
    const element = list.current;
    element?.addEventListener('pointermove', point, { passive: true });
    return () => element?.removeEventListener('pointermove', point);
  }, [list]);

  useSignalEffect(() => {
    // Groups are found by their names all the same.
    readMatches(version.value).catch(() => undefined);
  });

  useSignalEffect(() => {
    const at = now.value;
    const all = groups.value.map((group) => group.peek());
    const sought = all.filter((group) =>
      isSought(filter.value, group, matches.value.get(group.name) ?? []),
    );
    const isAsked = sorted.current.by !== filter.value;
    const isHeld =
      (at - pointedAt.current < POINTER_MS && list.current?.matches(':hover') === true) ||
      list.current?.contains(document.activeElement) === true;
    let next = order.peek();
    if (isAsked || (!isHeld && at - sorted.current.at >= SORT_MS_MIN)) {
      sorted.current = { at, by: filter.value };
      next = byPressure(sought, trendOf, at);
    } else {
      // Whoever no longer fits stays where it is until the next sorting, as long as it exists.
      const shown = new Set(next);
      next = keepOrder(
        next,
        all.filter((group) => shown.has(group.name) || sought.includes(group)).map((g) => g.name),
      );
    }
    if (next.join('\n') !== order.peek().join('\n')) order.value = next;
  });
  return order;
}

/** Most groups that one page of the API holds; search beyond is by name alone. */
const GROUPS_MAX = 1_000;

async function readMatches(ofVersion: number | null): Promise<void> {
  if (ofVersion === null) return;
  const result = await api('listGroups', { query: { limit: GROUPS_MAX } });
  if (!result.ok) return;
  matches.value = new Map(
    result.body.groups.map(({ name, match }) => [name, [...match.models, ...match.upstreams]]),
  );
}
