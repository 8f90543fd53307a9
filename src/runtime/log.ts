/**
 * Writes one structured line to the platform's log. Fields never hold keys, URLs with queries, headers
 * or bodies.
 */
export function logEvent(
  event: string,
  fields: Readonly<Record<string, string | number | null>>,
): void {
  // oxlint-disable-next-line no-console -- the platform collects the console, and this is its only writer
  console.log(JSON.stringify({ event, ...fields }));
}
