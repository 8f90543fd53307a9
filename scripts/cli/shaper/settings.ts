import type { GroupInput } from '../../../packages/import/src/members.ts';
import { COOLDOWN_MAX_MS } from '../../../src/core/words/settings.ts';
import { atMost, countOf, lastOf, msOf, switchOf, type Flags } from './read-flags.ts';

/** The shaper's default for -queue-timeout. */
const DEFAULT_WAIT_MS = 30_000;

/** Bounds of a group in Headgate. `apply` rejects values beyond them. */
const WAIT_MAX_MS = 3_600_000;
const QUEUE_MAX = 5_000;
const RETRIES_MAX = 10;
const RETRY_BODY_MAX_BYTES = 33_554_432;
const BREAKER_CALLS_MAX = 100;
const BREAKER_MS_MAX = 3_600_000;
const COMMENTS_MAX_MS = 120_000;

/** Settings that all groups of an upstream share. */
export function settingsOf(flags: Flags, notes: string[]): Partial<GroupInput> {
  const holdOf = (name: string): number | null => msOf(flags, name, COOLDOWN_MAX_MS, notes);
  const released = holdOf('release-cooldown');
  const cancelled = holdOf('cancel-cooldown');
  // If the shaper's breaker is enabled, the penalty replaces the failure hold.
  const failed = holdOf('cb-penalty') || holdOf('failure-hold');
  return {
    queue: queueOf(flags, notes),
    holds: {
      ...(released === null ? {} : { release_cooldown_ms: released }),
      ...(cancelled === null ? {} : { cancel_cooldown_ms: cancelled }),
      ...(failed === null ? {} : { failure_hold_ms: failed }),
    },
    ...retriesOf(flags, notes),
    ...breakerOf(flags, notes),
  };
}

function queueOf(flags: Flags, notes: string[]): GroupInput['queue'] {
  const wait = msOf(flags, 'queue-timeout', WAIT_MAX_MS, notes);
  if (wait === 0) {
    notes.push('-queue-timeout 0: a call may wait for 1 hour, which is the maximum of a group.');
  }
  const depth = countOf(flags, 'queue-depth', QUEUE_MAX, notes) ?? 0;
  const comments = msOf(flags, 'queue-comments', COMMENTS_MAX_MS, notes) ?? 0;
  return {
    timeout_ms: wait === 0 ? WAIT_MAX_MS : (wait ?? DEFAULT_WAIT_MS),
    ...(depth > 0 && { max_length: depth }),
    ...(comments > 0 && {
      keepalive: { after_ms: comments, every_ms: Math.max(1_000, comments) },
    }),
  };
}

function retriesOf(flags: Flags, notes: string[]): Pick<GroupInput, 'retries'> {
  // In the shaper, any negative number means unlimited.
  const isEndless = /^-\d+$/.test(lastOf(flags, 'retry') ?? '');
  if (isEndless) {
    notes.push(`-retry: ${RETRIES_MAX} is the maximum of a group and is used instead.`);
  }
  const max = isEndless ? RETRIES_MAX : countOf(flags, 'retry', RETRIES_MAX, notes);
  const megabytes = countOf(flags, 'retry-max-body-mb', Number.MAX_SAFE_INTEGER, notes);
  const flag = `-retry-max-body-mb ${megabytes}`;
  const bytes =
    megabytes === null ? null : atMost(megabytes * 1_048_576, RETRY_BODY_MAX_BYTES, flag, notes);
  if (max === null && bytes === null) return {};
  return {
    retries: { ...(max !== null && { max }), ...(bytes !== null && { max_body_bytes: bytes }) },
  };
}

/** Reads the breaker's flags. Absent flags keep the defaults of a group. */
function breakerOf(flags: Flags, notes: string[]): Pick<GroupInput, 'breaker'> {
  const msFrom = (name: string, leastMs: number): number | null => {
    const ms = msOf(flags, name, BREAKER_MS_MAX, notes);
    if (ms === null || ms >= leastMs) return ms;
    notes.push(`-${name}: ${leastMs} ms is the minimum of a group and is used instead.`);
    return leastMs;
  };
  const failures = countOf(flags, 'cb-threshold', BREAKER_CALLS_MAX, notes);
  const windowMs = msFrom('cb-window', 1_000);
  const holdMs = msFrom('cb-open-timeout', 100);
  const holdMaxMs = msFrom('cb-max-open-timeout', 100);
  if (failures !== null) {
    notes.push(
      `-cb-threshold ${failures}: the breaker of a group opens when half of at least ${failures} calls within the window failed (breaker.threshold, breaker.min_calls).`,
    );
  }
  const breaker = {
    ...(switchOf(flags, 'circuit-breaker') === false && { threshold: null }),
    ...(failures !== null && { min_calls: Math.max(1, failures) }),
    ...(windowMs !== null && { window_ms: windowMs }),
    ...(holdMs !== null && { hold_ms: holdMs }),
    ...(holdMaxMs !== null && { hold_max_ms: holdMaxMs }),
  };
  return Object.keys(breaker).length === 0 ? {} : { breaker };
}
