import type { LimitHint } from '../../core/words/signal.ts';
import type { HeaderFamily, HeaderProfile, LimitHeaders } from './header-families.ts';
import { readDraftHints } from './draft-headers.ts';
import { parseResetMs } from './reset-time.ts';

const COUNT = /^\d{1,15}(?:\.\d{1,6})?$/;

/**
 * Reads the limits that the headers of a response report. Empty if the upstream's headers are unknown or not reliable.
 * It runs for every response, and costs two look-ups if there are no such headers.
 */
export function readLimitHints(
  headers: Headers,
  profile: HeaderProfile | null,
  now: number,
): readonly LimitHint[] {
  const isSent = profile?.probes.some((name) => headers.has(name)) === true;
  return isSent ? readAllLimitHints(headers, profile, now) : [];
}

/** As `readLimitHints`, without the check for any header. Used for refusals, which are rare. */
export function readAllLimitHints(
  headers: Headers,
  profile: HeaderProfile | null,
  now: number,
): readonly LimitHint[] {
  if (profile === null || !profile.isReliable) return [];
  const hints: LimitHint[] = [];
  for (const limit of profile.limits) {
    const hint = readHint(headers, limit, now);
    if (hint !== null) hints.push(hint);
  }
  if (profile.readsDraft === true) hints.push(...readDraftHints(headers, now));
  return hints;
}

/** Responses that are searched for all names: the first ones, and then one in `SEARCHED_EVERY`. */
const SEARCHED_FIRST = 8;
const SEARCHED_EVERY = 16;

/**
 * Reads the limit headers of an unknown upstream. Each look-up calls into the runtime, so most responses are searched
 * only for names that it has sent before with a reset. Without a reset, it is unknown how a limit refills.
 */
export class SentLimitHeaders {
  readonly #family: HeaderFamily;
  readonly #sent = new Set<LimitHeaders>();
  #sendsDraft = false;
  #answers = 0;

  constructor(family: HeaderFamily) {
    this.#family = family;
  }

  read(headers: Headers, now: number): readonly LimitHint[] {
    const isTurn = this.#answers < SEARCHED_FIRST || this.#answers % SEARCHED_EVERY === 0;
    this.#answers += 1;
    const { limits, probes } = this.#family;
    const isSearched = isTurn && probes.some((name) => headers.has(name));
    const hints: LimitHint[] = [];
    for (const names of isSearched ? limits : this.#sent) {
      const hint = readHint(headers, names, now);
      if (hint === null) continue;
      hints.push(hint);
      if (hint.resetMs !== null) this.#sent.add(names);
    }
    if (!isSearched && !this.#sendsDraft) return hints;
    const drafts = readDraftHints(headers, now);
    if (drafts.length > 0) this.#sendsDraft = true;
    return [...hints, ...drafts];
  }
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

/** Reads a count. Returns null if it is absent or invalid. Some upstreams send -1 if they do not know it. */
function readCount(headers: Headers, name: string | null): number | null {
  const text = name === null ? null : headers.get(name);
  return text !== null && COUNT.test(text) ? Number(text) : null;
}
