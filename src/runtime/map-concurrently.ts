/** Maps items with at most `atOnce` running at a time. Keeps their order and rejects with the first failure. */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  map: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const rest = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of rest) results[index] = await map(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}
