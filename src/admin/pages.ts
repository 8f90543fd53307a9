/** One page of a list, and the cursor of the next. */
interface ListPage<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

/**
 * Cuts a page out of a list that is sorted by the names of its items. The cursor is the name that the page before
 * ended with, so that nothing is left out or told twice when the list changes meanwhile.
 */
export function pageByName<Item>(
  all: readonly Item[],
  nameOf: (item: Item) => string,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): ListPage<Item> {
  const rest = all
    .filter((item) => cursor === undefined || nameOf(item) > cursor)
    .toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const items = rest.slice(0, limit);
  const last = items.at(-1);
  return { items, next_cursor: rest.length > limit && last !== undefined ? nameOf(last) : null };
}
