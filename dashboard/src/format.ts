import { dollars, plural } from '../../src/core/words/figures.ts';

/** Formats numbers and times for people: always with a unit, at most three significant digits. */

const UNITS = [
  { ms: 86_400_000, unit: 'd' },
  { ms: 3_600_000, unit: 'h' },
  { ms: 60_000, unit: 'min' },
] as const;

/** Formats a duration, such as `8.2 s` or `3 min`. null becomes `–`. */
export function duration(ms: number | null): string {
  if (ms === null) return '–';
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${trimmed(ms / 1_000)} s`;
  const { ms: size, unit } = UNITS.find((one) => ms >= one.ms) ?? UNITS[2];
  return `${trimmed(ms / size)} ${unit}`;
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

/** Formats a count, such as `12` or `1.2K`. null means no bound. */
export function count(value: number | null): string {
  return value === null ? '∞' : COMPACT.format(value);
}

/** Formats an instant relative to now, such as `12 s ago` or `in 3 min`. */
export function relative(at: string, now: number): string {
  const ms = Date.parse(at) - now;
  if (Math.abs(ms) < 1_000) return 'now';
  return ms < 0 ? `${duration(-ms)} ago` : `in ${duration(ms)}`;
}

/** Formats an instant with date and time, in the time zone of the reader. */
export function exact(at: string): string {
  return new Date(at).toLocaleString('en-GB', { timeZoneName: 'short' });
}

/** Formats the time of day, such as `09:00 GMT+1`, in the time zone of the reader. Adds the date if it is not today. */
export function clock(at: string, now: number): string {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date(now).toDateString();
  return date.toLocaleString('en-GB', {
    ...(isToday ? {} : { day: 'numeric', month: 'short' }),
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'short',
  });
}

/** Time zone of the reader, such as `Europe/Berlin`. */
export function zoneName(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

function trimmed(value: number): string {
  return value >= 10 ? String(Math.round(value)) : String(Math.round(value * 10) / 10);
}

/** Formatters that the server and the command line use too. */
export { dollars as usd, plural };
