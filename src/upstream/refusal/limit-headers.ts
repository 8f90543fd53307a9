import type { LimitHint } from '../../core/words/signal.ts';
import type { HeaderProfile, LimitHeaders } from './header-families.ts';
import { readDraftHints } from './draft-headers.ts';
import { parseResetMs } from './reset-time.ts';

const COUNT = /^\d{1,15}(?:\.\d{1,6})?$/;

/**
 * Reads the limits that the headers of an answer tell. Empty where the upstream's headers are unknown or
 * not reliable. It runs for every answer: without any such header it costs two look-ups.
 */
export function readLimitHints(
  headers: Headers,
  profile: HeaderProfile | null,
  now: number,
): readonly LimitHint[] {
  if (profile === null || !profile.isReliable) return [];
  if (!profile.probes.some((name) => headers.has(name))) return [];
  const hints: LimitHint[] = [];
  for (const limit of profile.limits) {
    const hint = readHint(headers, limit, now);
    if (hint !== null) hints.push(hint);
  }
  if (profile.readsDraft === true) hints.push(...readDraftHints(headers, now));
  return hints;
}

function readHint(headers: Headers, names: LimitHeaders, now: number): LimitHint | null {
  const remaining = readCount(headers, names.remaining);
  const limit = readCount(headers, names.limit);
  if (remaining === null && limit === null) return null;
  const reset = names.reset === null ? null : headers.get(names.reset);
  return {
    dimension: names.dimension,
    windowMs: names.windowMs,
    limit,
    remaining,
    resetMs: reset === null ? null : parseResetMs(reset, now),
  };
}

/** Reads a count. Null for what is absent and for what is none: -1 says that the upstream does not know. */
function readCount(headers: Headers, name: string | null): number | null {
  const text = name === null ? null : headers.get(name);
  return text !== null && COUNT.test(text) ? Number(text) : null;
}
