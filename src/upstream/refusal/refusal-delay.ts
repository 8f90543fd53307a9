import type { LimitHint, RefusalKind } from '../../core/words/signal.ts';
import type { ErrorFields } from './error-fields.ts';
import { withoutQuoted } from './refusal-words.ts';
import {
  amountsMs,
  clampDelay,
  clockMs,
  parseMs,
  parseResetMs,
  wordedMs,
  spokenTime,
} from './reset-time.ts';

export interface DelaySources {
  readonly headers: Headers;
  readonly fields: ErrorFields;
  /** The limits in the headers, used only for the wait. */
  readonly hints: readonly LimitHint[];
  /** Computes how long calls should wait for a limit. Absent to wait until its reset. */
  readonly waitOf?: (hint: LimitHint) => number | null;
  readonly kind: RefusalKind;
  /** Time zone of times in the text that name none. null if unknown. */
  readonly zone: string | null;
  readonly waitHeaders: readonly WaitHeader[];
  readonly now: number;
}

/** A header with the end of a window, and the header that shows whether the window is exhausted. */
export interface WaitHeader {
  readonly name: string;
  readonly onlyIf: { readonly name: string; readonly is: RegExp };
  /** Matches the time in the header as its first group. Absent if the whole header is the time. */
  readonly time?: RegExp;
  /** The calls that the window counts. Absent if unknown. */
  readonly scope?: 'credential' | 'model';
}

export interface UsedUpWindows {
  /** Milliseconds until the last of them ends. null if no header names the end. */
  readonly waitMs: number | null;
  readonly scope: 'credential' | 'model';
}

/**
 * Reads how long the upstream asks to wait, in milliseconds. Returns null if it does not. Machine-readable fields take
 * precedence over text. Data about this refusal takes precedence over data about the limit, because a reset header
 * reports when the limit is full again, which is later than necessary. A wait of 0 yields to any other. No wait is
 * shorter than that of an exhausted window of a plan.
 */
export function readDelay(sources: DelaySources, usedUp: UsedUpWindows | null): number | null {
  const requestedMs = firstWait(allWaits(sources));
  const windowMs = usedUp?.waitMs ?? null;
  return windowMs === null ? requestedMs : Math.max(windowMs, requestedMs ?? 0);
}

type Waits = Iterable<number | null>;

/** Returns the first wait above 0, or 0 if all waits are 0. null if there are none. */
function firstWait(waits: Waits): number | null {
  let requestedMs: number | null = null;
  for (const ms of waits) {
    requestedMs = ms ?? requestedMs;
    if (ms !== null && ms > 0) break;
  }
  return requestedMs;
}

function* allWaits(sources: DelaySources): Waits {
  yield* headerWaits(sources);
  yield* bodyWaits(sources);
  yield hintDelay(sources);
  yield counterDelay(sources);
}

/** Reads the wait from `Retry-After` and similar headers. */
export function headerDelay(sources: Pick<DelaySources, 'headers' | 'now'>): number | null {
  return firstWait(headerWaits(sources));
}

function* headerWaits({ headers, now }: Pick<DelaySources, 'headers' | 'now'>): Waits {
  yield parseMs(headers.get('retry-after-ms') ?? '');
  yield parseMs(headers.get('x-ms-retry-after-ms') ?? '');
  yield parseResetMs(headers.get('retry-after') ?? '', now);
}

function* bodyWaits({ fields, zone, now }: DelaySources): Waits {
  // For a daily quota, Gemini still asks to retry within a minute, and its message repeats that.
  if (fields.quotaIds.some((id) => /perday|per_day/.test(id))) return;
  const text = evenlySpaced(fields.text);
  const words = ownWords(text);
  yield* fieldWaits(fields.waits, now);
  yield* textWaits(text, CUE);
  yield* textWaits(words, WAIT_CUE);
  yield bareDelay(words);
  yield chineseDelay(words);
  yield textInstant(text, zone, now);
  yield parseResetMs(fields.resetAt ?? '', now);
  yield spokenTime(words, zone, now);
}

/** Durations come before instants, because instants depend on both clocks. */
function* fieldWaits(waits: ErrorFields['waits'], now: number): Waits {
  const isInstant = ({ unit }: ErrorFields['waits'][number]): boolean => unit === 'instant';
  const spansFirst = [...waits.filter((each) => !isInstant(each)), ...waits.filter(isInstant)];
  for (const { value, unit } of spansFirst) {
    yield unit === 'ms' ? parseMs(value) : parseResetMs(value, now);
  }
}

const CUE = /\b(?:try again|retry)(?: your request| the request)? (?:in|after) /g;

const WAIT_CUE =
  /\b(?:(?:try again|retry|retrying)(?: again)?:?(?: (?:in|after):?)?|(?:time )?(?:until|till|to|before)(?: the)?(?: next)? reset(?: is)?:?|(?:available|reset|resets|renews?|refreshe?[ds]|refills?|replenishe?[ds]|expires|(?:come|be) back|allowed)(?: again)?:? (?:in|after):?|(?:blocked|locked|suspended|throttled|limited|exhausted|used up|unavailable|cooling down) for|wait(?: time)?(?: for| at least| of| is|:)?|retry[-_]after[:=]?|(?:cool ?down|back off)(?: period| time)?(?: of| for| is|:)?)(?: about| approximately| around| another| at least| at most| up to| less than)? ~?/g;

/** A number alone after the name of the header (`Retry-After: 30`), and the text form of Google's protocol. */
const BARE_S =
  /\bretry[-_ ]after(?::? |=)(\d{1,7})(?=\s*(?:[.,;)]|$))|\bretry_delay \{\s{0,8}seconds: (\d{1,7})/m;

/** "In 30 seconds" or "after 5 minutes and 30 seconds" in Chinese. */
const CHINESE =
  /(?:\d{1,7}(?:\.\d{1,3})? {0,2}(?:个 {0,2})?(?:秒|分|小时|天)钟? {0,2}){1,4}[之以]?后/;
const CHINESE_PART = /(\d{1,7}(?:\.\d{1,3})?) {0,2}(?:个 {0,2})?(秒|分|小时|天)/g;
const CHINESE_MS: Readonly<Record<string, number>> = {
  秒: 1_000,
  分: 60_000,
  小时: 3_600_000,
  天: 86_400_000,
};

/** Removes emphasis, and replaces white space with single spaces. */
function evenlySpaced(text: string): string {
  return text.replaceAll('*', '').replaceAll(/[^\S\n]+/g, ' ');
}

/** Removes quoted text, which may come from the caller. */
function ownWords(text: string): string {
  return text.split('\n').map(withoutQuoted).join('\n');
}

/** Reads `try again in 1m2.3s`, `wait 4 seconds`, `quota will reset after 1 hour and 5 minutes`. */
function* textWaits(text: string, cues: RegExp): Waits {
  for (const cue of text.matchAll(cues)) {
    const start = cue.index + cue[0].length;
    const ms = amountsMs(text, start) ?? wordedMs(text, start) ?? clockMs(text, start);
    if (ms !== null) yield clampDelay(ms);
  }
}

function bareDelay(text: string): number | null {
  const [, afterCue, ofSpan] = BARE_S.exec(text) ?? [];
  const seconds = afterCue ?? ofSpan;
  return seconds === undefined ? null : clampDelay(Number(seconds) * 1_000);
}

function chineseDelay(text: string): number | null {
  const span = CHINESE.exec(text)?.[0];
  if (span === undefined) return null;
  const parts = [...span.matchAll(CHINESE_PART)];
  return clampDelay(
    parts.reduce((ms, [, amount, unit = '']) => ms + Number(amount) * (CHINESE_MS[unit] ?? 0), 0),
  );
}

type WindowSources = Pick<DelaySources, 'headers' | 'waitHeaders' | 'now'>;

function isUsedUp({ onlyIf }: WaitHeader, headers: Headers): boolean {
  const state = headers.get(onlyIf.name);
  return state !== null && onlyIf.is.test(state);
}

function longestOf(waitHeaders: readonly WaitHeader[], headers: Headers, now: number) {
  let longestMs: number | null = null;
  for (const { name, time } of waitHeaders) {
    const value = headers.get(name) ?? '';
    const ms = parseResetMs(time === undefined ? value : (time.exec(value)?.[1] ?? ''), now);
    if (ms !== null) longestMs = Math.max(longestMs ?? 0, ms);
  }
  return longestMs;
}

/** Finds the exhausted windows of a plan. null if there are none. */
export function usedUpWindows({ headers, waitHeaders, now }: WindowSources): UsedUpWindows | null {
  const found = waitHeaders.filter(
    (each) => each.scope !== undefined && isUsedUp(each, headers) && headers.has(each.name),
  );
  const [first] = found;
  if (first === undefined) return null;
  // The last one summarizes the others, so it is the least specific about the calls.
  return { waitMs: longestOf(found, headers, now), scope: first.scope ?? 'credential' };
}

/** Names of counters that do not matter for a kind of refusal. For other kinds, no counter matters. */
const OTHER_COUNTERS: Readonly<Partial<Record<RefusalKind, RegExp>>> = {
  requests: /tokens/,
  tokens: /requests/,
  unknown: /^$/,
  long_window: /^$/,
};

/** Reads when the counters that are at 0 reset. */
function counterDelay({ headers, waitHeaders, kind, now }: DelaySources): number | null {
  const others = OTHER_COUNTERS[kind];
  if (others === undefined) return null;
  const found = waitHeaders.filter(
    (each) => each.scope === undefined && !others.test(each.name) && isUsedUp(each, headers),
  );
  return longestOf(found, headers, now);
}

const INSTANT =
  /(\d{4}-\d\d-\d\d)(?:[t ]| at )(\d\d:\d\d(?::\d\d)?)(?:\.\d{1,9})?(?: ?\(?(z|utc|gmt)\b| ?([+-]\d\d):?(\d\d))?/;

/** An instant as Claude Code writes it: `usage limit reached|1764230400`. */
const EPOCH = /limit reached\|(\d{10})\b/;

/** Reads `Your limit will reset at 2026-10-06 21:31:39`, and the same in Chinese. */
function textInstant(text: string, zone: string | null, now: number): number | null {
  const epoch = EPOCH.exec(text)?.[1];
  if (epoch !== undefined) return parseResetMs(epoch, now);
  const [, day, time, utc, hours, minutes] = INSTANT.exec(text) ?? [];
  const named = hours === undefined ? null : `${hours}:${minutes}`;
  const offset = utc === undefined ? (named ?? zone) : 'z';
  // Without a time zone, a guess could be off by half a day.
  if (day === undefined || time === undefined || offset === null) return null;
  return parseResetMs(`${day}T${time}${offset}`, now);
}

function hintDelay({ hints, kind, waitOf }: DelaySources): number | null {
  let best: LimitHint | null = null;
  let waitMs: number | null = null;
  for (const hint of hints) {
    if (!isAbout(hint, kind) || (best !== null && !isScarcer(hint, best))) continue;
    // The limit of a day or a plan does not reset while a caller waits.
    const isWhole = waitOf === undefined || kind === 'long_window';
    const ms = isWhole ? hint.resetMs : waitOf(hint);
    if (ms === null) continue;
    best = hint;
    waitMs = ms;
  }
  return waitMs;
}

/**
 * Whether a refusal is about a limit. A refusal that names its cause is about that dimension, and any other only about
 * an exhausted limit.
 */
function isAbout(hint: LimitHint, kind: RefusalKind): boolean {
  if (kind === 'tokens') return hint.dimension !== 'requests';
  if (kind === 'requests') return hint.dimension === 'requests';
  return (kind === 'unknown' || kind === 'long_window') && hint.remaining === 0;
}

/** Whether a limit is scarcer than another. If two are equally used up, the one that lasts longer counts. */
function isScarcer(hint: LimitHint, than: LimitHint): boolean {
  const difference = shareLeft(hint) - shareLeft(than);
  return difference < 0 || (difference === 0 && (hint.resetMs ?? 0) > (than.resetMs ?? 0));
}

function shareLeft({ limit, remaining }: LimitHint): number {
  if (remaining === null) return 1;
  return remaining === 0 ? 0 : remaining / Math.max(limit ?? Infinity, remaining);
}
