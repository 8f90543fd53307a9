/** Events that are as they should be. */
const NEWS: ReadonlySet<string> = new Set(['operator_act']);

/** Events that say that Headgate itself is at fault; whatever else is logged is a warning. */
const ERRORS: ReadonlySet<string> = new Set([
  'admin_error',
  'feed_failed',
  'hand_over_failed',
  'internal_error',
  'invariant_violated',
  'snapshot_unreadable',
  'temporary_failed',
]);

/**
 * Writes one structured line to the platform's log. Fields never hold keys, URLs with queries, headers
 * or bodies. The line has no time: Cloudflare adds it, and `serve` where Headgate hosts itself.
 */
export function logEvent(
  event: string,
  fields: Readonly<Record<string, string | number | null>>,
): void {
  const level = levelOf(event);
  // oxlint-disable-next-line no-console -- the platform collects the console, and this is its only writer
  console.log(JSON.stringify({ event, level, ...fields }));
}

function levelOf(event: string): 'info' | 'warn' | 'error' {
  if (ERRORS.has(event)) return 'error';
  return NEWS.has(event) ? 'info' : 'warn';
}
