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

/** Minimum time between two moves of cards. */
const SORT_MS_MIN = 5_000;

/** How long a pointer must not have moved over the list to count as forgotten there. */
const POINTER_MS = 15_000;

/** Models and upstreams that each configured group names, so that a search finds it by them. */
const matches = signal<ReadonlyMap<string, readonly string[]>>(new Map());

/** Groups that are wanted, and in which order. */
interface WantedGroups {
  readonly filter: GroupFilter;
  /** Null: the most pressed first. */
  readonly sort: Sort | null;
  /** Idle groups stand for themselves, unless somebody looks for some. */
  readonly foldsIdle: boolean;
}

/** Names of groups as they stand in the list. */
interface Order {
  readonly shown: readonly string[];
  readonly idle: readonly string[];
}

/**
 * Names of the groups that are looked for, in order. Nothing moves while somebody points at the list or has the focus
 * on a group in there; what is gone goes at once.
 */
export function useOrder(wanted: WantedGroups, list: RefObject<HTMLElement | null>): Order {
  const { filter, sort, foldsIdle } = wanted;
  const asked = useSignal(wanted);
  const order = useSignal<Order>({ shown: [], idle: [] });
  const sorted = useRef<{ at: number; by: WantedGroups | null }>({ at: 0, by: null });
  const pointedAt = useRef(0);

  useLayoutEffect(() => {
    asked.value = wanted;
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
    // Groups are found by their names all the same.
    readMatches(version.value).catch(() => undefined);
  });

  useSignalEffect(() => {
    const at = now.value;
    const all = groups.value.map((group) => group.peek());
    const by = asked.value;
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

/** The same order without what is gone. Whoever no longer fits stays until the next sorting, as long as it exists. */
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
