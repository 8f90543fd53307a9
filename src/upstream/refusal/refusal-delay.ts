import type { LimitHint, RefusalKind } from '../../core/words/signal.ts';
import type { ErrorFields } from './error-fields.ts';
import { clampDelay, parseMs, parseResetMs } from './reset-time.ts';

/** All that may say how long to wait. */
export interface DelaySources {
  readonly headers: Headers;
  readonly fields: ErrorFields;
  readonly hints: readonly LimitHint[];
  readonly kind: RefusalKind;
  /** Zone of a time in the text that names none; null: not known. */
  readonly zone: string | null;
  readonly now: number;
}

/**
 * Reads how long the upstream asks to wait, in milliseconds, or null where it does not say. What is meant
 * for machines comes before text, and what is about this refusal before what is about the limit: a
 * reset header tells when the limit is whole again, which is later than need be.
 */
export function readDelay(sources: DelaySources): number | null {
  return headerDelay(sources) ?? bodyDelay(sources) ?? hintDelay(sources);
}

/** Reads how long the headers that are meant for it ask to wait. */
export function headerDelay({
  headers,
  now,
}: Pick<DelaySources, 'headers' | 'now'>): number | null {
  for (const name of ['retry-after-ms', 'x-ms-retry-after-ms']) {
    const ms = parseMs(headers.get(name) ?? '');
    if (ms !== null) return ms;
  }
  return parseResetMs(headers.get('retry-after') ?? '', now);
}

function bodyDelay({ fields, zone, now }: DelaySources): number | null {
  // For a quota of a day Gemini still says to come back within a minute, and its message repeats it.
  if (fields.quotaIds.some((id) => /perday|per_day/.test(id))) return null;
  return (
    parseResetMs(fields.retryDelay ?? '', now) ??
    textDelay(fields.text) ??
    textInstant(fields.text, zone, now) ??
    parseResetMs(fields.resetAt ?? '', now)
  );
}

const CUE = /\b(?:try again|retry)(?: your request| the request)? (?:in|after) /g;

/** The quantifiers are bounded so that no text makes the search slow. */
const AMOUNT =
  / {0,2}(?:(?:,|and) {0,2})?(\d{1,9}(?:\.\d{1,12})?) {0,2}(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])/y;

/** Maximum amounts of one delay: days, hours, minutes, seconds, milliseconds. */
const AMOUNTS_MAX = 5;

/** Reads `try again in 1m2.3s`, `retry after 4 seconds`, `try again in 1 hour and 5 minutes`. */
function textDelay(text: string): number | null {
  for (const cue of text.matchAll(CUE)) {
    const ms = amountsAt(text, cue.index + cue[0].length);
    if (ms !== null) return clampDelay(ms);
  }
  return null;
}

function amountsAt(text: string, start: number): number | null {
  let ms: number | null = null;
  AMOUNT.lastIndex = start;
  for (let count = 0; count < AMOUNTS_MAX; count += 1) {
    const part = AMOUNT.exec(text);
    if (part === null) break;
    ms = (ms ?? 0) + Number(part[1]) * unitMs(part[2] ?? '');
  }
  return ms;
}

function unitMs(unit: string): number {
  if (unit === 'ms' || unit.startsWith('milli')) return 1;
  if (unit.startsWith('s')) return 1_000;
  if (unit.startsWith('m')) return 60_000;
  return unit.startsWith('h') ? 3_600_000 : 24 * 3_600_000;
}

const INSTANT = /(\d{4}-\d\d-\d\d)[t ](\d\d:\d\d:\d\d)(z|[+-]\d\d:\d\d)?/;

/** Reads `Your limit will reset at 2026-10-06 21:31:39`, and the same in Chinese. */
function textInstant(text: string, zone: string | null, now: number): number | null {
  const [, day, time, offset = zone] = INSTANT.exec(text) ?? [];
  // Where nobody says whose time it is, a guess could be half a day wrong.
  if (day === undefined || time === undefined || offset === null) return null;
  return parseResetMs(`${day}T${time}${offset}`, now);
}

function hintDelay({ hints, kind }: DelaySources): number | null {
  let best: LimitHint | null = null;
  for (const hint of hints) {
    if (hint.resetMs === null || !isAbout(hint, kind)) continue;
    if (best === null || isScarcer(hint, best)) best = hint;
  }
  return best?.resetMs ?? null;
}

/**
 * Tells whether a limit is what a refusal is about. One that names its cause is about that dimension; any other
 * only about what is used up.
 */
function isAbout(hint: LimitHint, kind: RefusalKind): boolean {
  if (kind === 'tokens') return hint.dimension !== 'requests';
  if (kind === 'requests') return hint.dimension === 'requests';
  return (kind === 'unknown' || kind === 'long_window') && hint.remaining === 0;
}

/** Tells which limit is scarcer. Of two that are equally used up, the one that lasts longer holds the call back. */
function isScarcer(hint: LimitHint, than: LimitHint): boolean {
  const difference = shareLeft(hint) - shareLeft(than);
  return difference < 0 || (difference === 0 && (hint.resetMs ?? 0) > (than.resetMs ?? 0));
}

function shareLeft({ limit, remaining }: LimitHint): number {
  if (remaining === null) return 1;
  return remaining === 0 ? 0 : remaining / Math.max(limit ?? Infinity, remaining);
}
