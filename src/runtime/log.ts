import { steadyClock } from './async.ts';

/** Events of normal operation. */
const INFO: ReadonlySet<string> = new Set(['operator_act']);

/** Events that report a fault of Headgate itself. All other events are warnings. */
const ERRORS: ReadonlySet<string> = new Set([
  'admin_error',
  'feed_failed',
  'hand_over_failed',
  'internal_error',
  'invariant_violated',
  'snapshot_unreadable',
  'temporary_failed',
]);

/** Events of a lasting state, which every call, alarm or change would log again. */
const LASTING: ReadonlySet<string> = new Set([
  'admin_error',
  'directory_unreachable',
  'feed_failed',
  'hand_over_failed',
  'made_not_looked_up',
  'made_not_noted',
  'pools_not_told',
  'run_not_held',
  'run_unreadable',
  'snapshot_unreadable',
  'snapshot_unwritten',
  'temporary_failed',
  'trials_forgotten',
]);

/** Minimum time between two log lines of such an event in one isolate. */
const LASTING_EVERY_MS = 10_000;

/** Time of the last line of each such event, and the number of lines left out since. */
const lastLines = new Map<string, { readonly at: number; leftOut: number }>();

/**
 * Writes one structured line to the platform's log. Fields never hold keys, URLs with queries, headers or bodies. The
 * line has no time: Cloudflare adds it, and so does `serve` when Headgate is self-hosted.
 *
 * For an event that repeats while a state lasts, most lines are left out. The next line reports their number as
 * `left_out`.
 */
export function logEvent(
  event: string,
  fields: Readonly<Record<string, string | number | null>>,
): void {
  const leftOut = LASTING.has(event) ? countLeftOut(event) : 0;
  if (leftOut === null) return;
  const line = {
    event,
    level: levelOf(event),
    ...fields,
    ...(leftOut > 0 && { left_out: leftOut }),
  };
  // oxlint-disable-next-line no-console -- the platform collects the console, and this is its only writer
  console.log(JSON.stringify(line));
}

/** Returns how many lines of an event were left out before this one. null means that this line is left out too. */
function countLeftOut(event: string): number | null {
  const now = steadyClock.now();
  const last = lastLines.get(event);
  if (last !== undefined && now - last.at < LASTING_EVERY_MS) {
    last.leftOut += 1;
    return null;
  }
  lastLines.set(event, { at: now, leftOut: 0 });
  return last?.leftOut ?? 0;
}

function levelOf(event: string): 'info' | 'warn' | 'error' {
  if (ERRORS.has(event)) return 'error';
  return INFO.has(event) ? 'info' : 'warn';
}
