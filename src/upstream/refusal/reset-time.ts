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
