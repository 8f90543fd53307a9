import { dollars, plural } from '../../src/core/words/figures.ts';

/** Numbers and times for people: units always, three figures at most. */

const UNITS = [
  { ms: 86_400_000, unit: 'd' },
  { ms: 3_600_000, unit: 'h' },
  { ms: 60_000, unit: 'min' },
] as const;

/** A duration, as in `8.2 s` or `3 min`. Null: `–`. */
export function duration(ms: number | null): string {
  if (ms === null) return '–';
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${trimmed(ms / 1_000)} s`;
  const { ms: size, unit } = UNITS.find((one) => ms >= one.ms) ?? UNITS[2];
  return `${trimmed(ms / size)} ${unit}`;
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

/** A count, as in `12` or `1.2K`. Null: without a bound. */
export function count(value: number | null): string {
  return value === null ? '∞' : COMPACT.format(value);
}

/** How far an instant is from now, as in `12 s ago` or `in 3 min`. */
export function relative(at: string, now: number): string {
  const ms = Date.parse(at) - now;
  if (Math.abs(ms) < 1_000) return 'now';
  return ms < 0 ? `${duration(-ms)} ago` : `in ${duration(ms)}`;
}

/** The instant itself, in the time of the reader. */
export function exact(at: string): string {
  return new Date(at).toLocaleString('en-GB', { timeZoneName: 'short' });
}

/** The time of day of an instant, in the time of the reader, with its day where that is another one, as in `09:00 GMT+1`. */
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

/** The zone of the reader, as in `Europe/Berlin`. */
export function zoneName(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

function trimmed(value: number): string {
  return value >= 10 ? String(Math.round(value)) : String(Math.round(value * 10) / 10);
}

/** US dollars and counted nouns, as the server and the command line write them. */
export { dollars as usd, plural };
