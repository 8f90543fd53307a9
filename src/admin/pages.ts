interface ListPage<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

/**
 * Returns a page of a list that is sorted by the names of its items. The cursor is the last name of the previous page,
 * so concurrent changes of the list cause neither omissions nor duplicates.
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
