/** Maximum wait: a month, the longest window of any plan, and a day of grace. */
const CEILING_MS = 32 * 24 * 3_600_000;

/** Maximum length of a text that any of the grammars needs. What is longer is not looked at. */
const TEXT_LENGTH_MAX = 64;

const NUMBER = /^\d+(?:\.\d+)?$/;

/** Below these a number is a span, above them an instant. 1e9 s was in 2001, 1e12 ms too. */
const EPOCH_S_MIN = 1e9;
const EPOCH_MS_MIN = 1e12;

const GO_DURATION = /^(?:\d+(?:\.\d+)?(?:ms|us|µs|μs|ns|h|m|s))+$/;
const GO_PART = /(\d+(?:\.\d+)?)(ms|us|µs|μs|ns|h|m|s)/g;

/** An RFC 3339 time or an HTTP-date, whose zone may be missing. `Date.parse` alone takes any junk. */
const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d/;
const HTTP_DATE = /^(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,? /i;
const ZONE = /(?:z|gmt|utc|[+-]\d\d:?\d\d)$/i;

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

/** Rounds up, so that nobody comes back too early, and keeps within what anybody waits for. */
export function clampDelay(ms: number): number {
  return Math.min(CEILING_MS, Math.max(0, Math.ceil(ms)));
}

/**
 * Reads the milliseconds from now that a header or field means, or null where it means nothing (empty, `-1`,
 * junk). The grammars in use, as of 2026-11-20: a number of seconds, an epoch in seconds or
 * milliseconds, a Go duration (`6m0s`, `577.5ms`), RFC 3339, an HTTP-date. What is past is 0.
 */
export function parseResetMs(value: string, now: number): number | null {
  const text = value.trim();
  if (text === '' || text.length > TEXT_LENGTH_MAX) return null;
  if (NUMBER.test(text)) return clampDelay(numberMs(Number(text), now));
  if (GO_DURATION.test(text)) return clampDelay(durationMs(text));
  return dateMs(text, now);
}

/** Reads the milliseconds that a header which counts in milliseconds says, or null where it is no number. */
export function parseMs(value: string): number | null {
  const text = value.trim();
  return text.length <= TEXT_LENGTH_MAX && NUMBER.test(text) ? clampDelay(Number(text)) : null;
}

function numberMs(value: number, now: number): number {
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
  // Without a zone a parser takes its machine's; upstreams that leave it out mean UTC.
  const at = Date.parse(ZONE.test(text) ? text : `${text}Z`);
  return Number.isNaN(at) ? null : clampDelay(at - now);
}
