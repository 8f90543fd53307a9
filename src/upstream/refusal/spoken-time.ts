import { parseResetMs } from './reset-time.ts';

/** Phrases before a time: `try again tomorrow`, `your limit resets 3pm (America/New_York)`. */
const CUE =
  /\b(?:(?:try|retry)(?: again)?|(?:come|be) back|available|resets?|renews?|refreshe?[sd]|refills?|replenishe?[sd]|restored|expires|access|until)(?: again| daily| on)?:?(?: (?:at|on|after|by|until))?:? {0,2}/g;

const CLOCK =
  /(?:(midnight|noon)|(\d{1,2})(?::(\d\d)(?::\d\d)?)? ?(am|pm)\b|(\d{1,2}):(\d\d)(?::\d\d)?\b(?![\d:]))/y;
const ZONE =
  /,? {0,2}\(?(utc|gmt|z|pacific|eastern|p[sd]?t|e[sd]?t|[a-z]{2,16}\/[a-z_]{2,24}(?:\/[a-z_]{2,24})?)(?![a-z])(?: (?:standard |daylight )?time)?\)?/y;
const MONTH = 'jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec';
const WEEKDAY = 'sun|mon|tue|wed|thu|fri|sat';
const DATE = new RegExp(
  `(?:(?:${WEEKDAY})[a-z]{0,6},? )?(?:(${MONTH})[a-z]{0,6}\\.? (\\d{1,2})|(\\d{1,2}) (${MONTH})[a-z]{0,6}\\.?)(?:st|nd|rd|th)?(?:,? (20\\d\\d)\\b)?`,
  'y',
);
const DAY = new RegExp(`(tomorrow|today|(?:${WEEKDAY})[a-z]{0,6})\\b`, 'y');
const BETWEEN = /,?(?: at)? {0,2}/y;

/** An HTTP-date, or a number of seconds or milliseconds since 1970. */
const INSTANT =
  /(?:[a-z]{3,9}, \d\d[ -][a-z]{3}[ -]\d{2,4} \d\d:\d\d:\d\d gmt|[a-z]{3} [a-z]{3} \d\d \d{4} \d\d:\d\d:\d\d gmt[+-]\d{4}|\d{10}(?:\d{3})?(?!\d))/y;

const ZONES: Readonly<Record<string, string>> = { p: 'America/Los_Angeles', e: 'America/New_York' };

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Maximum age of a time of day that means today. An older one means tomorrow. */
const JUST_NOW_MS = 5 * MINUTE_MS;

/** A calendar day. Days and months out of range continue in the next month or year. */
interface CalendarDay {
  readonly year: number;
  readonly month: number;
  readonly day: number;
}

/**
 * Reads the milliseconds until a time of day or a date in a message in lower case. null if there is none, or its
 * time zone is unknown. `tomorrow` and a date without a time start at midnight UTC.
 *
 * @param zone the offset of times without a zone, such as `+08:00`. null if unknown
 */
export function spokenTime(text: string, zone: string | null, now: number): number | null {
  for (const cue of text.matchAll(CUE)) {
    const ms = readAt(text, cue.index + cue[0].length, zone, now);
    if (ms !== null) return ms;
  }
  return null;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function readAt(text: string, start: number, zone: string | null, now: number): number | null {
  const instant = matchAt(INSTANT, text, start);
  if (instant !== null) return parseResetMs(instant[0], now);
  let at = start;
  const date = matchAt(DATE, text, at);
  const day = date === null ? matchAt(DAY, text, at) : null;
  const named = date ?? day;
  if (named !== null) {
    at += named[0].length;
    at += matchAt(BETWEEN, text, at)?.[0].length ?? 0;
  }
  const clock = matchAt(CLOCK, text, at);
  if (clock === null && (named === null || day?.[1] === 'today')) return null;
  const minutes = clock === null ? 0 : minutesOf(clock);
  const zoneAt = clock === null ? at : at + clock[0].length;
  const zoneName = matchAt(ZONE, text, zoneAt)?.[1];
  const place = placeOf(zoneName) ?? zone ?? (clock === null ? 'UTC' : null);
  if (minutes === null || place === null) return null;
  return untilTime(place, { date, weekday: day?.[1] ?? null, minutes }, now);
}

/** Reads the minutes since midnight. null if the time is invalid. */
function minutesOf([text, word, hour12, minute12, half, hour24, minute24]: RegExpExecArray) {
  if (word !== undefined) return word === 'noon' ? 12 * 60 : 0;
  const hour = Number(hour12 ?? hour24);
  const minute = Number(minute12 ?? minute24 ?? 0);
  if (minute > 59 || hour > (half === undefined ? 23 : 12)) return null;
  const seconds = Number(/:\d\d:(\d\d)/.exec(text)?.[1] ?? 0);
  const hours = half === undefined ? hour : (hour % 12) + (half === 'pm' ? 12 : 0);
  return hours * 60 + minute + seconds / 60;
}

function placeOf(zone: string | undefined): string | null {
  if (zone === undefined) return null;
  return zone.includes('/') ? zone : (ZONES[zone.charAt(0)] ?? 'UTC');
}

interface SpokenTime {
  readonly date: RegExpExecArray | null;
  /** A date, `today` or `tomorrow`. null means the next occurrence of the time. */
  readonly weekday: string | null;
  readonly minutes: number;
}

function untilTime(
  place: string,
  { date, weekday, minutes }: SpokenTime,
  now: number,
): number | null {
  const local = wallClock(place, now);
  if (local === null) return null;
  const today = new Date(local);
  const here: CalendarDay = {
    year: today.getUTCFullYear(),
    month: today.getUTCMonth(),
    day: today.getUTCDate(),
  };
  const msTo = (days: number, { year, month, day } = here): number =>
    instantAt(place, Date.UTC(year, month, day + days) + Math.round(minutes * MINUTE_MS)) - now;
  if (date !== null) {
    const [, month = date[4] ?? '', dayOfMonth = date[3], , , year] = date;
    const named = {
      year: Number(year ?? here.year),
      month: MONTH.split('|').indexOf(month),
      day: Number(dayOfMonth),
    };
    const ms = msTo(0, named);
    // Around New Year, a date without a year may be in the next year.
    return Math.max(
      0,
      year === undefined && ms < -DAY_MS ? msTo(0, { ...named, year: named.year + 1 }) : ms,
    );
  }
  const days = weekday === null ? 0 : daysTo(weekday, today.getUTCDay());
  const ms = msTo(days);
  const isOver = ms < -JUST_NOW_MS;
  if (isOver && weekday !== null) return weekday === 'today' ? 0 : msTo(7);
  return Math.max(0, isOver ? msTo(1) : ms);
}

function daysTo(weekday: string, today: number): number {
  if (weekday === 'today') return 0;
  if (weekday === 'tomorrow') return 1;
  const named = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'].indexOf(weekday.slice(0, 3));
  return (named - today + 7) % 7;
}

/** Converts a local time of a zone, given as if it were UTC, to an instant. */
function instantAt(place: string, shown: number): number {
  const near = shown - ((wallClock(place, shown) ?? shown) - shown);
  // The zone's offset may have changed between the two.
  return shown - ((wallClock(place, near) ?? near) - near);
}

/** Converts an instant to the local time of a zone, as if it were UTC. null if there is no such zone. */
function wallClock(place: string, at: number): number | null {
  if (place === 'UTC') return at;
  try {
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone: place,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
    });
    const parts = Object.fromEntries(
      format.formatToParts(at).map(({ type, value }) => [type, Number(value)]),
    );
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute) + (at % MINUTE_MS);
  } catch {
    return null;
  }
}
