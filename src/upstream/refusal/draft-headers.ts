import { listItems, parseHeaderValue } from '../../runtime/header-value.ts';
import type { LimitHint } from '../../core/words/signal.ts';
import { parseResetMs } from './reset-time.ts';

/** The rate-limit headers of the IETF draft (draft-ietf-httpapi-ratelimit-headers), in its three forms. */

/** Maximum length of a header that is read. */
const LENGTH_MAX = 512;

const LIMITS_MAX = 8;

const LEADING_COUNT = /^\s*(\d{1,15})(?!\d)/;

/**
 * Reads the limits in these headers:
 * - `RateLimit: "default";r=50;t=30`, with the limit in `RateLimit-Policy: "default";q=100;w=60`
 * - `RateLimit: limit=100, remaining=50, reset=30`
 * - `RateLimit-Limit: 100, 100;w=60`, `RateLimit-Remaining: 50`, `RateLimit-Reset: 30`
 */
export function readDraftHints(headers: Headers, now: number): readonly LimitHint[] {
  const text = headers.get('ratelimit');
  if (text === null || text.length > LENGTH_MAX) return readApart(headers, now);
  const remaining = numberOf(text, 'remaining');
  if (remaining !== null) {
    return [hintOf('', numberOf(text, 'limit'), remaining, resetMsOf(text, 'reset', now))];
  }
  const policies = itemsOf(headers.get('ratelimit-policy') ?? '');
  return itemsOf(text).flatMap((item) => {
    const left = numberOf(item, 'r');
    if (left === null) return [];
    const policy = policies.find((each) => nameOf(each) === nameOf(item)) ?? '';
    return [hintOf(policy, numberOf(policy, 'q'), left, resetMsOf(item, 't', now))];
  });
}

function readApart(headers: Headers, now: number): readonly LimitHint[] {
  const remaining = leadingCount(headers.get('ratelimit-remaining'));
  if (remaining === null) return [];
  const reset = headers.get('ratelimit-reset');
  const resetMs = reset === null ? null : parseResetMs(reset, now);
  return [hintOf('', leadingCount(headers.get('ratelimit-limit')), remaining, resetMs)];
}

function hintOf(
  policy: string,
  limit: number | null,
  remaining: number,
  resetMs: number | null,
): LimitHint {
  const windowS = numberOf(policy, 'w');
  const windowMs = windowS === null ? null : windowS * 1_000;
  const dimension = /token/i.test(policy) ? 'tokens' : 'requests';
  return { dimension, windowMs, limit, remaining, resetMs };
}

function itemsOf(text: string): readonly string[] {
  return text.length > LENGTH_MAX ? [] : listItems(text).slice(0, LIMITS_MAX);
}

/** Returns the name of an item, quoted or not. */
function nameOf(item: string): string {
  return parseHeaderValue(item).value;
}

/** The name of a policy may contain any word. */
const QUOTED = /"(?:[^"\\]|\\.)*"/gs;

/** Reads a numeric parameter. null if there is none. */
function numberOf(text: string, name: string): number | null {
  const plain = text.replaceAll(QUOTED, '""');
  const value = new RegExp(`(?:^|[;,])\\s*${name}=(\\d{1,15})(?!\\d)`, 'i').exec(plain)?.[1];
  return value === undefined ? null : Number(value);
}

function resetMsOf(text: string, name: string, now: number): number | null {
  const seconds = numberOf(text, name);
  return seconds === null ? null : parseResetMs(String(seconds), now);
}

function leadingCount(text: string | null): number | null {
  const count = LEADING_COUNT.exec(text ?? '')?.[1];
  return count === undefined ? null : Number(count);
}
