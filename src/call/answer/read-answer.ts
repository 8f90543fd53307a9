import { providerOf } from '../../providers/catalog.ts';
import { refusalRulesOf } from '../../providers/limits.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { instant } from '../../core/words/ids.ts';
import type { LimitHint, UpstreamSignal } from '../../core/words/signal.ts';
import type { Schedule } from '../../runtime/async.ts';
import { packingsOf, unpacked } from '../../upstream/body/packing.ts';
import type { Judgement } from '../../upstream/opening/judge-record.ts';
import {
  formOf,
  judgeWhole,
  OpeningReader,
  type LateError,
} from '../../upstream/opening/opening-reader.ts';
import { readErrorFields } from '../../upstream/refusal/error-fields.ts';
import {
  isOfCall,
  classifyRefusal,
  mayRefuse,
  type LimitWaits,
  type UpstreamRefusal,
} from '../../upstream/refusal/classify-refusal.ts';
import { peekAnswer } from '../../upstream/transfer/fetch-answer.ts';
import type { HeldCall } from '../../upstream/transfer/held-call.ts';
import {
  FEED_FORWARD_DEFAULTS,
  waitFromHints,
  type FeedForwardOptions,
} from '../../upstream/refusal/feed-forward.ts';
import {
  ALL_COMMON_HEADERS,
  readLimitHints,
  SentLimitHeaders,
  type HeaderProfile,
  type Refill,
} from '../../upstream/refusal/limit-headers.ts';
import type { RefusalRules } from '../../upstream/refusal/refusal-table.ts';
import type { AnswerSource, CallLimits } from './sending.ts';
import { isProven, meanCallTakes, refillSeen, waitAfterRefusal } from './limit-windows.ts';

export interface AnswerRead {
  /** null if the call was served, or the error is the caller's mistake. */
  readonly refusal: UpstreamRefusal | null;
  /** The answer to forward instead of the one that was read. null if there was none. */
  readonly answer: Response | null;
  /** An error inside a 200 that is a mistake of the caller, not a refusal. Absent if there is none. */
  readonly isMistake?: true;
  /** Only a prelude came in time, so an error may still follow. Absent if content or the whole answer came. */
  readonly isOpen?: true;
}

/** The connection failed before the headers of the answer. */
const BROKEN: UpstreamRefusal = {
  signal: { kind: 'error', retryAfterMs: null, slotsMax: null, hints: [] },
  scope: 'upstream',
  isFinal: false,
  isOfApi: false,
};

/** Reads from the headers and the beginning of the body whether an answer is a refusal, and of what kind. */
export async function readAnswer(
  answer: Response | null,
  source: AnswerSource,
  after?: Schedule,
): Promise<AnswerRead> {
  if (answer === null) return { refusal: BROKEN, answer };
  const { status, headers } = answer;
  if (status !== 200 && !mayRefuse(status, source.isOfMember)) return { refusal: null, answer };
  const peeked = await peekAnswer(answer, undefined, after);
  const body = status === 200 ? errorIn(peeked.text) : peeked.text;
  if (body === null) return { refusal: null, answer: peeked.answer };
  return { refusal: classifyError(body, { status, headers }, source), answer: peeked.answer };
}

/** Finds the error in the body, or its beginning, of an answer with status 200. null if there is none. */
function errorIn(text: string): string | null {
  const judgement = judgeWhole('text', new TextEncoder().encode(text));
  return typeof judgement === 'object' ? judgement.error : null;
}

export function readFailedEvent(event: string, source: AnswerSource): UpstreamRefusal | null {
  const error = errorIn(event);
  const answer = { status: 200, headers: new Headers() };
  return error === null ? null : classifyError(error, answer, source);
}

/** Maximum bytes of a compressed answer that is decompressed to be read. Errors are small. */
const PACKED_BYTES_MAX = 2_048;

/**
 * Reads the beginning of an answer with status 200. An error there counts like an error status. The
 * call keeps the bytes until they are passed on.
 */
export async function readInside(
  answer: Response,
  source: AnswerSource,
  held: HeldCall,
): Promise<AnswerRead> {
  const read = await judgeAnswer(answer, held);
  if (read === null) {
    held.giveUp();
    return { refusal: BROKEN, answer: null };
  }
  const { judgement } = read;
  held.noteContent();
  if (judgement === 'prelude') return { refusal: null, answer: read.answer, isOpen: true };
  if (judgement === 'content') return { refusal: null, answer: read.answer };
  const refusal = classifyError(judgement.error, read.answer, source);
  if (refusal === null) return { refusal, answer: read.answer, isMistake: true };
  return { refusal, answer: held.unread(read.answer) };
}

interface JudgedAnswer {
  readonly judgement: Judgement;
  readonly answer: Response;
}

/** Classifies the beginning of an answer. null if the call was cut meanwhile. */
async function judgeAnswer(answer: Response, held: HeldCall): Promise<JudgedAnswer | null> {
  const { headers } = answer;
  const type = headers.get('content-type');
  const form = formOf(type);
  const packings = packingsOf(headers.get('content-encoding'));
  const isPlain = packings?.length === 0;
  const isReadable = form !== null && packings !== null;
  if (!isReadable && !held.awaitsContent) return { judgement: 'content', answer };
  if (held.takesWhole(answer, type)) {
    const bytes = await held.takeWhole(answer);
    if (bytes === null || !isReadable) return { judgement: 'content', answer };
    if (isPlain) return { judgement: judgeWhole(form, new Uint8Array(bytes)), answer };
    if (bytes.byteLength > PACKED_BYTES_MAX) return { judgement: 'content', answer };
    const copy = unpacked(new Blob([bytes]).stream(), packings);
    const judgement = await held.readOpening(copy, new OpeningReader(form), true);
    return { judgement: judgement ?? 'content', answer };
  }
  const { body, status, statusText } = answer;
  if (body === null) return { judgement: 'content', answer };
  const reader = new OpeningReader(isReadable ? form : 'bytes');
  if (isPlain || packings === null) {
    const judgement = await held.readOpening(body, reader);
    return judgement === null ? null : { judgement, answer };
  }
  const [copy, rest] = body.tee();
  const judgement = await held.readOpening(unpacked(copy, packings), reader, true);
  const same = new Response(rest, { status, statusText, headers, encodeBody: 'manual' });
  return judgement === null ? null : { judgement, answer: same };
}

/** Reads an error as a refusal. null if it is a mistake of the caller. */
function classifyError(
  error: string,
  { status, headers }: Pick<Response, 'status' | 'headers'>,
  source: AnswerSource,
): UpstreamRefusal | null {
  const { upstream, isOfMember } = source;
  const { rules, headerProfile } = recordOf(upstream);
  const now = instant(Date.now());
  return classifyRefusal({
    rules,
    headerProfile,
    status,
    headers,
    body: error,
    now,
    waits: waitsAt(source),
    isOfMember,
  });
}

const FAILED_LATE: UpstreamRefusal = { ...BROKEN, scope: 'model', isOfApi: true };

/**
 * Reads the error at the end of a stream. null if it is a mistake of the caller. Content shows that the call was
 * accepted, so an error without a known name is a failure of the upstream.
 */
export function readLateError(
  { error, isAfterContent }: LateError,
  { status, headers }: Pick<Response, 'status' | 'headers'>,
  source: AnswerSource,
): UpstreamRefusal | null {
  const refusal = classifyError(error, { status, headers }, source);
  if (refusal !== null || !isAfterContent) return refusal;
  return isOfCall(readErrorFields(error, headers)) ? null : FAILED_LATE;
}

/** Reads the limit headers of a served call, unless they are known to be unreliable. */
export function hintsIn({ headers }: Response, upstream: Upstream): readonly LimitHint[] {
  const { sent, headerProfile } = recordOf(upstream);
  const now = instant(Date.now());
  return sent === null ? readLimitHints(headers, headerProfile, now) : sent.read(headers, now);
}

/** Whether the upstream is unknown, so its limit headers must first show how the limit refills. */
export function hasUnknownHeaders(upstream: Upstream): boolean {
  return recordOf(upstream).sent !== null;
}

/** The warning that hints contain about limits that are almost empty. null if there is none. */
export function nearlyEmpty(
  hints: readonly LimitHint[],
  upstream: Upstream,
  limits: CallLimits,
): UpstreamSignal | null {
  const { sent } = recordOf(upstream);
  const { usual, isSet } = refillAt(upstream);
  const { place, underWay } = limits;
  const options = optionsOf(limits);
  const { now } = options;
  const refills = new Map(
    hints.map((hint) => [hint, refillSeen(hint, place, now, underWay)] as const),
  );
  const refillOf = (hint: LimitHint): Refill => (isSet ? usual : (refills.get(hint) ?? usual));
  const believed = sent !== null ? hints.filter((hint) => isProven(hint, place)) : hints;
  const waitMs = waitFromHints(believed, refillOf, options);
  return waitMs === null || waitMs === 0
    ? null
    : { kind: 'served', retryAfterMs: waitMs, slotsMax: null, hints: believed };
}

function optionsOf({ place, underWay, feedForward }: CallLimits): FeedForwardOptions {
  return {
    requestsMax: feedForward.keep_requests,
    tokensMax: feedForward.keep_tokens,
    share: feedForward.keep_share,
    resetMsMin: RESET_MIN_MS,
    waitMsMax: feedForward.wait_max_ms,
    underWay,
    tokensOf: (hint) => meanCallTakes(hint, place),
    now: Date.now(),
  };
}

/** Returns how the upstream's limits refill unless its headers have shown it, and whether an operator has set that. */
function refillAt(upstream: Upstream): { readonly usual: Refill; readonly isSet: boolean } {
  const { headerProfile } = recordOf(upstream);
  const { refill: usual } = headerProfile ?? UNKNOWN;
  const isSet = upstream.limitHeaders === 'window' || upstream.limitHeaders === 'bucket';
  return { usual, isSet };
}

/** Returns how long a refused call's limits hold other calls back, if the headers have shown how they refill. */
function waitsAt({ upstream, limits }: AnswerSource): LimitWaits {
  const { headerProfile, sent } = recordOf(upstream);
  const refill = refillAt(upstream);
  const at = limits();
  const options = { ...optionsOf(at), share: FEED_FORWARD_DEFAULTS.share };
  if (sent === null) {
    const waitOf = (hint: LimitHint) => waitAfterRefusal(hint, at.place, refill, options);
    return { profile: headerProfile, waitOf };
  }
  // Counters at 0 are always read.
  const waitOf = (hint: LimitHint) =>
    hint.remaining === 0
      ? waitAfterRefusal(hint, at.place, { usual: 'window', isSet: false }, options)
      : null;
  return { profile: UNKNOWN, waitOf };
}

/** Minimum time to a reset that calls wait for. A nearer one passes before the next call arrives. */
const RESET_MIN_MS = 500;

interface AnswerRules {
  readonly rules: RefusalRules;
  readonly headerProfile: HeaderProfile | null;
  /** Reads limit headers that must first show how the limit refills. null if `headerProfile` applies. */
  readonly sent: SentLimitHeaders | null;
}

/** Upstreams never change, so the record of each is looked up once. */
const known = new WeakMap<Upstream, AnswerRules>();

function recordOf(upstream: Upstream): AnswerRules {
  let of = known.get(upstream);
  if (of === undefined) {
    const isUnknown = upstream.limitHeaders === 'auto' && providerOf(upstream) === null;
    const sent = isUnknown ? new SentLimitHeaders(UNKNOWN) : null;
    of = { rules: rulesOf(upstream), headerProfile: profileOf(upstream), sent };
    known.set(upstream, of);
  }
  return of;
}

/** With `limit_headers: ignore`, only the windows of a plan are read. */
function rulesOf(upstream: Upstream): RefusalRules {
  const rules = refusalRulesOf(upstream);
  if (upstream.limitHeaders !== 'ignore') return rules;
  const waitHeaders = rules.quirks.waitHeaders?.filter(({ scope }) => scope !== undefined) ?? [];
  return { ...rules, quirks: { ...rules.quirks, waitHeaders } };
}

/** The operator's setting, otherwise the provider's profile. */
function profileOf(upstream: Upstream): HeaderProfile | null {
  const { limitHeaders } = upstream;
  if (limitHeaders === 'ignore') return null;
  const profile = providerOf(upstream)?.limitHeaders ?? null;
  if (limitHeaders === 'auto') return profile;
  const believed = { ...(profile ?? UNKNOWN), isReliable: true };
  if (limitHeaders === 'use') return believed;
  return { ...believed, refill: limitHeaders === 'window' ? 'window' : 'continuous' };
}

/** The common headers, for unknown upstreams. */
const UNKNOWN: HeaderProfile = {
  ...ALL_COMMON_HEADERS,
  isReliable: true,
  source: 'in common use',
  date: '2026-11-20',
};
