import { durationMs } from '../../src/contract/config/members.ts';
import { EXIT, CommandFailure } from './failure.ts';

/** The end of a temporary change, as given on the command line. */
export interface StopSignal {
  readonly until?: string;
  readonly for?: string;
}

const CLOCK = /^([01]?\d|2[0-3]):([0-5]\d)$/;
const EXPECTED =
  'expected a local time such as 09:00, or a timestamp such as 2026-11-24T09:00:00Z.';

/** Returns the end of a change in UTC. null means that the change is permanent. */
export function endOf(given: StopSignal, now: Date): string | null {
  const { until, for: length } = given;
  if (until !== undefined && length !== undefined) {
    throw new CommandFailure(EXIT.usage, 'Use either --until or --for, not both.');
  }
  if (length !== undefined) {
    const ms = durationMs(length);
    if (!(ms >= 1_000)) {
      throw new CommandFailure(
        EXIT.usage,
        '--for: expected a duration of at least 1s, such as 90s, 30m or 2h.',
      );
    }
    return new Date(now.getTime() + ms).toISOString();
  }
  if (until === undefined) return null;
  const [, hours, minutes] = CLOCK.exec(until) ?? [];
  if (hours !== undefined) return nextClock(Number(hours), Number(minutes), now).toISOString();
  if (!/^\d{4}-\d\d-\d\dT/.test(until) || Number.isNaN(Date.parse(until))) {
    throw new CommandFailure(EXIT.usage, `--until: ${EXPECTED}`);
  }
  return new Date(until).toISOString();
}

/** Returns the next occurrence of a local time. */
function nextClock(hours: number, minutes: number, now: Date): Date {
  const at = new Date(now);
  at.setHours(hours, minutes, 0, 0);
  if (at <= now) at.setDate(at.getDate() + 1);
  return at;
}
