/** Headers that apply to one connection (RFC 9110, 7.6.1). `Connection` may name more. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Deletes, in place, the headers that `Connection` names and those that match. Names are in lower case. */
export function deleteHeaders(
  headers: Headers,
  matches: (name: string, value: string) => boolean,
): void {
  const connection = headers.get('connection');
  const named = connection?.split(',').map((name) => name.trim().toLowerCase()) ?? [];
  // Collect first and delete afterwards, because deleting during iteration skips entries.
  const leaving = [...headers].filter(
    ([name, value]) => matches(name, value) || named.includes(name),
  );
  for (const [name] of leaving) headers.delete(name);
}
