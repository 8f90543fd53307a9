import type { GroupConfig } from '../contract/config/config.ts';
import { providerOf } from '../providers/index.ts';
import { refusalRulesOf } from '../providers/refusals.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { instant } from '../core/words/ids.ts';
import type { LimitHint, UpstreamSignal } from '../core/words/signal.ts';
import type { Schedule } from '../runtime/call-clock.ts';
import { peekAnswer } from '../upstream/refusal/refused-answer.ts';
import {
  classifyRefusal,
  mayRefuse,
  type UpstreamRefusal,
} from '../upstream/refusal/classify-refusal.ts';
import { waitFromHints } from '../upstream/refusal/feed-forward.ts';
import { COMMON_HEADERS, type HeaderProfile } from '../upstream/refusal/header-families.ts';
import { readLimitHints } from '../upstream/refusal/limit-headers.ts';
import {
  REFUSAL_INSIDE_200_BYTES_MAX,
  type RefusalRules,
} from '../upstream/refusal/refusal-table.ts';

/** An upstream's answer with what it says of the call. */
export interface AnswerRead {
  /** Null: the call was served, or it is the caller's own mistake. */
  readonly refusal: UpstreamRefusal | null;
  /** To be passed on in place of the one that was read. Null: there was none. */
  readonly answer: Response | null;
}

/** A connection that broke before there were headers. */
const BROKEN: UpstreamRefusal = {
  signal: { kind: 'error', retryAfterMs: null, slotsMax: null, hints: [] },
  scope: 'upstream',
  isFinal: false,
  isOfApi: false,
};

/**
 * Reads an answer: whether it is a refusal and of what kind, from its headers and the beginning of its body.
 * `isOfMember`: the call went to a group's member, with the key of that or none, for which its caller is not to blame.
 */
export async function readAnswer(
  answer: Response | null,
  upstream: Upstream,
  isOfMember: boolean,
  after?: Schedule,
): Promise<AnswerRead> {
  if (answer === null) return { refusal: BROKEN, answer };
  const { rules, headerProfile } = knownOf(upstream);
  const { status, headers } = answer;
  const mayBe = status === 200 ? mayHideRefusal(answer, rules) : mayRefuse(status, isOfMember);
  if (!mayBe) return { refusal: null, answer };
  const peeked = await peekAnswer(answer, undefined, after);
  const now = instant(Date.now());
  const said = { rules, headerProfile, status, headers, body: peeked.text, now, isOfMember };
  return { refusal: classifyRefusal(said), answer: peeked.answer };
}

/** Some providers refuse inside a 200, in a small JSON body. */
function mayHideRefusal({ headers }: Response, { quirks }: RefusalRules): boolean {
  if (quirks.refusesInside200 !== true) return false;
  const isJson = headers.get('content-type')?.includes('json') === true;
  return isJson && Number(headers.get('content-length') ?? 0) <= REFUSAL_INSIDE_200_BYTES_MAX;
}

/** Reads what the headers of a served call tell of limits; nothing where they are not to be believed. */
export function hintsIn({ headers }: Response, upstream: Upstream): readonly LimitHint[] {
  const { headerProfile } = knownOf(upstream);
  return readLimitHints(headers, headerProfile, instant(Date.now()));
}

/** Takes from hints what they warn of; null: nothing. */
export function nearlyEmpty(
  hints: readonly LimitHint[],
  upstream: Upstream,
  feedForward: GroupConfig['feed_forward'],
): UpstreamSignal | null {
  const { headerProfile } = knownOf(upstream);
  if (headerProfile === null) return null;
  const waitMs = waitFromHints(hints, headerProfile.refill, {
    requestsMax: feedForward.keep_requests,
    share: feedForward.keep_share,
    resetMsMin: RESET_MIN_MS,
    waitMsMax: feedForward.wait_max_ms,
  });
  return waitMs === null || waitMs === 0
    ? null
    : { kind: 'served', retryAfterMs: waitMs, slotsMax: null, hints };
}

/**
 * Minimum time to a reset that is waited for: a nearer one is over before the next call arrives.
 */
const RESET_MIN_MS = 500;

interface Known {
  readonly rules: RefusalRules;
  readonly headerProfile: HeaderProfile | null;
}

/** Upstreams never change, so what is known of each is looked up once. */
const known = new WeakMap<Upstream, Known>();

function knownOf(upstream: Upstream): Known {
  let of = known.get(upstream);
  if (of === undefined) {
    of = { rules: refusalRulesOf(upstream), headerProfile: profileOf(upstream) };
    known.set(upstream, of);
  }
  return of;
}

/** By the operator, else by what is known of the provider. */
function profileOf(upstream: Upstream): HeaderProfile | null {
  const { limitHeaders } = upstream;
  if (limitHeaders === 'ignore') return null;
  const profile = providerOf(upstream)?.limitHeaders ?? null;
  if (limitHeaders === 'auto') return profile;
  return { ...(profile ?? COMMON), isReliable: true };
}

/** The usual headers, where an operator says that an upstream sends some. */
const COMMON: HeaderProfile = {
  ...COMMON_HEADERS,
  isReliable: true,
  source: 'configured',
  date: '2026-11-20',
};
