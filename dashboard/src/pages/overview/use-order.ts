import { signal, useSignal, useSignalEffect } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { api } from '../../api.ts';
import { attention, groups, now, version } from '../../feed.ts';
import { attentionOf, rankOf } from '../../model/attention.ts';
import { byColumn, isIdle, type Sort } from '../../model/group-columns.ts';
import { isNarrow, isSought, type GroupFilter } from '../../model/group-filter.ts';
import { byPressure, keepOrder } from '../../model/order.ts';
import type { GroupView } from '../../model/status.ts';

/** Minimum time between two reorders. */
const SORT_MS_MIN = 5_000;

/** A pointer that did not move for this long does not block reordering. */
const POINTER_MS = 15_000;

/** Models and upstreams of each configured group, for the search. */
const matches = signal<ReadonlyMap<string, readonly string[]>>(new Map());

interface WantedGroups {
  readonly filter: GroupFilter;
  /** null means the most urgent first. */
  readonly sort: Sort | null;
  /** Whether idle groups are listed separately, unless a filter is set. */
  readonly foldsIdle: boolean;
}

interface Order {
  readonly shown: readonly string[];
  readonly idle: readonly string[];
}

/**
 * Ordered names of the groups that match the filter. The order is fixed while a pointer is over the list or a group in
 * it has the focus. Deleted groups disappear immediately.
 */
export function useOrder(wanted: WantedGroups, list: RefObject<HTMLElement | null>): Order {
  const { filter, sort, foldsIdle } = wanted;
  const request = useSignal(wanted);
  const order = useSignal<Order>({ shown: [], idle: [] });
  const sorted = useRef<{ at: number; by: WantedGroups | null }>({ at: 0, by: null });
  const pointedAt = useRef(0);

  useLayoutEffect(() => {
    request.value = wanted;
  }, [filter, sort, foldsIdle]);

  useEffect(() => {
    const point = (): void => {
      pointedAt.current = Date.now();
    };
    const element = list.current;
    element?.addEventListener('pointermove', point, { passive: true });
    return () => element?.removeEventListener('pointermove', point);
  }, [list]);

  useSignalEffect(() => {
    // On failure, the search still works by name.
    readMatches(version.value).catch(() => undefined);
  });

  useSignalEffect(() => {
    const at = now.value;
    const all = groups.value.map((group) => group.peek());
    const by = request.value;
    const sought = all.filter((group) =>
      isSought(by.filter, group, matches.value.get(group.name) ?? []),
    );
    const isHeld =
      (at - pointedAt.current < POINTER_MS && list.current?.matches(':hover') === true) ||
      (list.current?.querySelector('a:focus') ?? null) !== null;
    const isDue = !isHeld && at - sorted.current.at >= SORT_MS_MIN;
    const isAsked = sorted.current.by !== by;
    if (isAsked || isDue) sorted.current = { at, by };
    const next = isAsked || isDue ? inOrder(sought, by) : kept(order.peek(), all, sought);
    if (!isSame(next, order.peek())) order.value = next;
  });
  return order.value;
}

function inOrder(sought: readonly GroupView[], wanted: WantedGroups): Order {
  const { filter, sort, foldsIdle } = wanted;
  const all = attention.peek();
  const names =
    sort === null ? byPressure(sought, (name) => rankOf(all, name)) : byColumn(sought, sort);
  if (!foldsIdle || isNarrow(filter)) return { shown: names, idle: [] };
  const idle = new Set(
    sought
      .filter((group) => isIdle(group) && attentionOf(all, group.name) === null)
      .map(({ name }) => name),
  );
  return {
    shown: names.filter((name) => !idle.has(name)),
    idle: names.filter((name) => idle.has(name)),
  };
}

/** Keeps the order without deleted groups. Groups that no longer match stay until the next reorder. */
function kept(before: Order, all: readonly GroupView[], sought: readonly GroupView[]): Order {
  const there = new Set(all.map(({ name }) => name));
  const idle = before.idle.filter((name) => there.has(name));
  const folded = new Set(idle);
  const had = new Set(before.shown);
  const fits = new Set(sought.map(({ name }) => name));
  const names = [...there].filter((name) => !folded.has(name) && (had.has(name) || fits.has(name)));
  return { shown: keepOrder(before.shown, names), idle };
}

function isSame(a: Order, b: Order): boolean {
  const textOf = ({ shown, idle }: Order): string => [...shown, '', ...idle].join('\n');
  return textOf(a) === textOf(b);
}

/** Page size of the API. Further groups are found by name only. */
const GROUPS_MAX = 1_000;

async function readMatches(ofVersion: number | null): Promise<void> {
  if (ofVersion === null) return;
  const result = await api('GET /groups', { query: { limit: GROUPS_MAX } });
  if (!result.ok) return;
  matches.value = new Map(
    result.body.groups.map(({ name, match }) => [name, [...match.models, ...match.upstreams]]),
  );
}
