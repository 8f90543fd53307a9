import type { LimitHint, RefusalKind } from '../../core/words/signal.ts';
import type { ErrorFields } from './error-fields.ts';
import { withoutQuoted } from './own-words.ts';
import { amountsMs, clampDelay, parseMs, parseResetMs } from './reset-time.ts';

/** All that may say how long to wait. */
export interface DelaySources {
  readonly headers: Headers;
  readonly fields: ErrorFields;
  readonly hints: readonly LimitHint[];
  readonly kind: RefusalKind;
  /** Zone of a time in the text that names none; null: not known. */
  readonly zone: string | null;
  /** Headers that name the end of a used-up window. */
  readonly waitHeaders: readonly WaitHeader[];
  readonly now: number;
}

/** A header that names the end of a window, and the header that says whether the window is used up. */
export interface WaitHeader {
  readonly name: string;
  readonly onlyIf: { readonly name: string; readonly is: RegExp };
}

/**
 * Reads how long the upstream asks to wait, in milliseconds, or null where it does not say. What is meant
 * for machines comes before text, and what is about this refusal before what is about the limit: a
 * reset header tells when the limit is whole again, which is later than need be.
 */
export function readDelay(sources: DelaySources): number | null {
  return headerDelay(sources) ?? bodyDelay(sources) ?? windowDelay(sources) ?? hintDelay(sources);
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
    firstDelay(fields.waits, now) ??
    textDelay(fields.text, CUE) ??
    textDelay(ownWords(fields.text), WAIT_CUE) ??
    textInstant(fields.text, zone, now) ??
    parseResetMs(fields.resetAt ?? '', now)
  );
}

function firstDelay(waits: ErrorFields['waits'], now: number): number | null {
  let instantMs: number | null = null;
  for (const { value, unit } of waits) {
    const ms = unit === 'ms' ? parseMs(value) : parseResetMs(value, now);
    if (ms === null) continue;
    // A span comes before an instant, which the clocks of both must agree about.
    if (unit !== 'instant') return ms;
    instantMs ??= ms;
  }
  return instantMs;
}

const CUE = /\b(?:try again|retry)(?: your request| the request)? (?:in|after) /g;

/** Other words about waiting. */
const WAIT_CUE =
  /\b(?:(?:try again|retry|retrying)(?: again)?:? (?:in|after)|(?:available|reset|resets|renews?|refreshe?s|refills?|replenishe?s|expires|(?:come|be) back)(?: again)? (?:in|after)|wait(?: for| at least)?|retry[-_]after:?|(?:cool ?down|back off)(?: period| time)?(?: of| for|:)?)(?: about| approximately| around| another| at least)? /g;

/** Drops what messages quote, which may be the caller's. */
function ownWords(text: string): string {
  return text.split('\n').map(withoutQuoted).join('\n');
}

/** Reads `try again in 1m2.3s`, `wait 4 seconds`, `quota will reset after 1 hour and 5 minutes`. */
function textDelay(text: string, cues: RegExp): number | null {
  for (const cue of text.matchAll(cues)) {
    const ms = amountsMs(text, cue.index + cue[0].length);
    if (ms !== null) return clampDelay(ms);
  }
  return null;
}

/** Reads when the last of the used-up windows ends. */
function windowDelay({ headers, waitHeaders, now }: DelaySources): number | null {
  let longestMs: number | null = null;
  for (const { name, onlyIf } of waitHeaders) {
    const state = headers.get(onlyIf.name);
    if (state === null || !onlyIf.is.test(state)) continue;
    const ms = parseResetMs(headers.get(name) ?? '', now);
    if (ms !== null) longestMs = Math.max(longestMs ?? 0, ms);
  }
  return longestMs;
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
