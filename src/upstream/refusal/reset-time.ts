/** Times at which a limit resets: in headers, and in the words of messages. */

/** Maximum wait: a month, the longest window of any plan, and one day of margin. */
const CEILING_MS = 32 * 24 * 3_600_000;

/** Maximum length of a text in any of the formats. Longer texts are ignored. */
const TEXT_LENGTH_MAX = 64;

/** The same for a header that was sent several times and joined. */
const JOINED_LENGTH_MAX = 4 * TEXT_LENGTH_MAX;

const NUMBER = /^\+?\d+(?:\.\d*)?$/;

/** Words before a duration in a header: `in 30 seconds`. */
const PREFIX = /^(?:in|after) +/;

/**
 * A number above one of these is an instant in that unit, in 2001 or later. A smaller number is a duration in seconds.
 */
const EPOCH_S_MIN = 1e9;
const EPOCH_MS_MIN = 1e12;
const EPOCH_US_MIN = 1e15;
const EPOCH_NS_MIN = 1e18;

const GO_DURATION = /^(?:\d+(?:\.\d+)?(?:ms|us|µs|μs|ns|h|m|s))+$/;
const GO_PART = /(\d+(?:\.\d+)?)(ms|us|µs|μs|ns|h|m|s)/g;

/** An RFC 3339 time or an HTTP-date, whose zone may be missing. `Date.parse` alone would accept invalid text. */
const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d/;
const HTTP_DATE =
  /^(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,? |\d{1,2}[ -][a-z]{3}[ -]\d{2,4} )/i;
const ZONE = /(?:z|gmt|utc|[ecmp][sd]t|[+-]\d\d:?\d\d)$/i;

/** ISO 8601: `PT30S`, `P1DT2H`. */
const ISO_DURATION =
  /^p(?:(\d{1,4})w)?(?:(\d{1,5})d)?(?:t(?:(\d{1,6}(?:\.\d+)?)h)?(?:(\d{1,8}(?:\.\d+)?)m)?(?:(\d{1,9}(?:\.\d+)?)s)?)?$/i;
const ISO_UNITS_MS = [7 * 86_400_000, 86_400_000, 3_600_000, 60_000, 1_000];

/**
 * Amounts with units in words: `13,873 s`. Of a range such as `5-10 s`, the larger one counts. The quantifiers are
 * bounded, so that no text makes the search slow.
 */
const AMOUNT =
  / {0,2}(?:(?:, {0,2}and|,|and|&) {0,2})?(?:\d{1,5} ?(?:-|–|to) ?)?((?:\d{1,3}(?:,\d{3}){1,2}|\d{1,9})(?:\.\d{1,12})?) {0,2}(milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w|months?)(?![a-z])/y;

/** An amount in words: `an hour`, `half an hour`, `two minutes`. `a few` is not one. */
const WORDED =
  / {0,2}(half an?|an?|one|two|three|five|ten|fifteen|thirty) (second|minute|hour|day|week|month)s?(?![a-z])/y;
const WORDS: Readonly<Record<string, number>> = {
  two: 2,
  three: 3,
  five: 5,
  ten: 10,
  fifteen: 15,
  thirty: 30,
};

/** Maximum amounts of one delay: days, hours, minutes, seconds, milliseconds. */
const AMOUNTS_MAX = 5;

/** The comma between two values, but not the comma in an HTTP-date or in `1,000`. */
const JOINED =
  /(?<!\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?),(?:\s+|(?!\d{3}(?:\D|$)))/i;

const UNIT_MS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ns: 1e-6,
};

/** Rounds up, so that no call is retried too early, and limits the delay to the maximum wait. */
export function clampDelay(ms: number): number {
  return Math.min(CEILING_MS, Math.max(0, Math.ceil(ms)));
}

/**
 * Converts a header or field to milliseconds from now. Returns null if it has no meaning (empty, `-1`, invalid). The
 * formats in use, as of 2026-11-20, are a number of seconds, an epoch in seconds or milliseconds, a Go duration
 * (`6m0s`, `577.5ms`), an ISO 8601 duration (`PT30S`), an amount with its unit (`30 seconds`), RFC 3339, and an
 * HTTP-date. Past instants are 0. Of several values, as in a header that was sent twice, the longest counts.
 */
export function parseResetMs(value: string, now: number): number | null {
  if (value.length > JOINED_LENGTH_MAX) return null;
  const single = parseOne(value, now);
  if (single !== null || !value.includes(',')) return single;
  // Empty elements of a list have no meaning.
  const parts = value.split(JOINED).filter((part) => part.trim() !== '');
  return longestOf(parts.map((part) => parseOne(part, now)));
}

/** Returns the longest delay, or null if one of them is unreadable. */
function longestOf(delays: readonly (number | null)[]): number | null {
  const known = delays.filter((ms) => ms !== null);
  return known.length === delays.length && known.length > 0 ? Math.max(...known) : null;
}

function parseOne(value: string, now: number): number | null {
  const text = value.trim().replace(/^"(.*)"$/, '$1');
  if (text === '' || text.length > TEXT_LENGTH_MAX) return null;
  if (NUMBER.test(text)) return clampDelay(numberMs(Number(text), now));
  if (GO_DURATION.test(text)) return clampDelay(durationMs(text));
  const iso = ISO_DURATION.exec(text);
  if (iso !== null && /\d/.test(text)) {
    const parts = iso.slice(1).map((part, index) => Number(part ?? 0) * (ISO_UNITS_MS[index] ?? 0));
    return clampDelay(parts.reduce((sum, ms) => sum + ms, 0));
  }
  const spoken = TIME_SPAN.test(text) ? clockMs(text, 0) : spokenMs(text.toLowerCase());
  return spoken === null ? dateMs(text, now) : clampDelay(spoken);
}

/** Reads a whole text as a duration: `30 seconds`, `in one minute`. */
function spokenMs(text: string): number | null {
  const span = text.replace(PREFIX, '');
  return amountsMs(span, 0, true) ?? wordedMs(span, 0, true);
}

/**
 * Whether a reset is reported in whole seconds, as a span or as an instant. One in a thousand exact values looks the
 * same.
 */
export function isInWholeSeconds(resetMs: number, now: number): boolean {
  return resetMs % 1_000 === 0 || (now + resetMs) % 1_000 === 0;
}

/**
 * Reads amounts with their units from `start` on, in lower case: `1 hour and 5 minutes`.
 *
 * @param isWhole whether the text must end there
 */
export function amountsMs(text: string, start: number, isWhole = false): number | null {
  let ms: number | null = null;
  let end = start;
  AMOUNT.lastIndex = start;
  for (let count = 0; count < AMOUNTS_MAX; count += 1) {
    const part = AMOUNT.exec(text);
    if (part === null) break;
    end = AMOUNT.lastIndex;
    ms = (ms ?? 0) + Number(part[1]?.replaceAll(',', '')) * unitMs(part[2] ?? '');
  }
  return isWhole && end !== text.length ? null : ms;
}

/**
 * Reads an amount that is written in words from `start` on, in lower case. `isWhole` is whether the text must end
 * there.
 */
export function wordedMs(text: string, start: number, isWhole = false): number | null {
  WORDED.lastIndex = start;
  const [whole = '', count, unit = ''] = WORDED.exec(text) ?? [];
  if (count === undefined || (isWhole && whole.length !== text.length - start)) return null;
  return (count.startsWith('half') ? 1 / 2 : (WORDS[count] ?? 1)) * unitMs(unit);
}

/** The same without other text, as .NET writes it. */
const TIME_SPAN = /^(?:\d{1,3}\.)?\d{1,2}:\d\d:\d\d$/;

/** A duration written as a time of day, with or without days: `02:41:12`, `1.02:41:12`. */
const CLOCK = /(?:(\d{1,3})\.)?(\d{1,2}):(\d\d):(\d\d)(?![\d:])/y;

/** Reads a duration that is written as a time of day from `start` on. */
export function clockMs(text: string, start: number): number | null {
  CLOCK.lastIndex = start;
  const [, days, hours, minutes, seconds] = CLOCK.exec(text) ?? [];
  if (seconds === undefined) return null;
  const allHours = Number(days ?? 0) * 24 + Number(hours);
  return ((allHours * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000;
}

function unitMs(unit: string): number {
  if (unit === 'ms' || unit.startsWith('msec') || unit.startsWith('milli')) return 1;
  if (unit.startsWith('mo')) return 30 * 24 * 3_600_000;
  if (unit.startsWith('w')) return 7 * 24 * 3_600_000;
  if (unit.startsWith('s')) return 1_000;
  if (unit.startsWith('m')) return 60_000;
  return unit.startsWith('h') ? 3_600_000 : 24 * 3_600_000;
}

/** Reads a header in milliseconds. Returns null if it is not a number. */
export function parseMs(value: string): number | null {
  if (value.length > TEXT_LENGTH_MAX) return null;
  return longestOf(
    value.split(JOINED).map((part) => {
      const text = part.trim();
      return NUMBER.test(text) ? clampDelay(Number(text)) : null;
    }),
  );
}

function numberMs(value: number, now: number): number {
  if (value >= EPOCH_NS_MIN) return value / 1e6 - now;
  if (value >= EPOCH_US_MIN) return value / 1e3 - now;
  if (value >= EPOCH_MS_MIN) return value - now;
  if (value >= EPOCH_S_MIN) return value * 1_000 - now;
  return value * 1_000;
}

function durationMs(text: string): number {
  let ms = 0;
  for (const [, amount, unit] of text.matchAll(GO_PART)) {
    ms += Number(amount) * (UNIT_MS[unit ?? ''] ?? 0);
  }
  return ms;
}

function dateMs(text: string, now: number): number | null {
  if (!RFC_3339.test(text) && !HTTP_DATE.test(text)) return null;
  // Without a zone, a parser would use the machine's. Upstreams that omit it mean UTC.
  const at = Date.parse(ZONE.test(text) ? text : `${text}Z`);
  return Number.isNaN(at) ? null : clampDelay(at - now);
}

/** Phrases before a time: `try again tomorrow`, `your limit resets 3pm (America/New_York)`. */
const CUE =
  /\b(?:(?:try|retry)(?: again)?|(?:come|be) back|available|resets?|renews?|refreshe?[sd]|refills?|replenishe?[sd]|restored|expires|access|until)(?: again| daily| on)?:?(?: (?:at|on|after|by|until))?:? {0,2}/g;

const SPOKEN_CLOCK =
  /(?:(midnight|noon)|(\d{1,2})(?::(\d\d)(?::\d\d)?)? ?(am|pm)\b|(\d{1,2}):(\d\d)(?::\d\d)?\b(?![\d:]))/y;
const SPOKEN_ZONE =
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
  const clock = matchAt(SPOKEN_CLOCK, text, at);
  if (clock === null && (named === null || day?.[1] === 'today')) return null;
  const minutes = clock === null ? 0 : minutesOf(clock);
  const zoneAt = clock === null ? at : at + clock[0].length;
  const zoneName = matchAt(SPOKEN_ZONE, text, zoneAt)?.[1];
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
