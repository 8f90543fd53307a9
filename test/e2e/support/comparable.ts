/** Values that the mock makes anew for every call. The strict upstream makes nothing anew. */
const MADE_PER_CALL = new Set([
  'id',
  'created',
  'created_at',
  'completed_at',
  'item_id',
  'response_id',
  'responseId',
  'timestamp',
]);

/** A result as plain JSON, so that classes and hidden fields of SDKs do not matter. */
export function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null)) as unknown;
}

/** The same without what the mock makes anew for every call. */
export function withoutIds(value: unknown): unknown {
  const text = JSON.stringify(value ?? null, (key, field: unknown) =>
    MADE_PER_CALL.has(key) ? undefined : field,
  );
  return JSON.parse(text) as unknown;
}

/** Everything that a stream yields. */
export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) items.push(item);
  return items;
}
