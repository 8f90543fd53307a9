import type { RefusalKind, UpstreamSignal } from '../core/words/signal.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import type { CallTicket } from './acquire/admission.ts';
import type { PositionListener } from './acquire/slices.ts';
import { RefusedMembers } from './members/refused-members.ts';
import type { Answered } from './result.ts';

/**
 * Maximum times that a call goes back into the queue because its upstream refuses it; and where it takes too many at once:
 * what takes fewer of a sudden, and counts them for longer besides, refuses one and the same call more often.
 */
const REENTRIES_MAX = 3;
const MANY_KEYS_REENTRIES_MAX = 6;

/** Number of retries that are allowed before there were calls to take a part of. */
const BUDGET_START = 2;

/** Maximum retries that may be saved up. */
const BUDGET_MAX = 50;

/**
 * How long the pause before a retry is: half of it for certain and half by chance, twice as long with each.
 */
export const RETRY_PAUSE_MS = 250;
export const RETRY_PAUSE_MAX_MS = 4_000;

/** Refusals that may stop a whole group for a while; some of them only if they say for how long. */
const STOPPING: ReadonlySet<RefusalKind> = new Set(['requests', 'tokens', 'ramp', 'unknown']);
const STOPPING_FOR: ReadonlySet<RefusalKind> = new Set(['overload', 'long_window']);

/** A refusal that is its caller's answer if nobody else takes the call. */
interface RefusalAnswer {
  readonly kind: RefusalKind;
  readonly answer: Answered;
}

/** How often a call may go back into the queue that is refused so. */
export function reentriesMaxOf(kind: RefusalKind): number {
  return kind === 'concurrency' ? MANY_KEYS_REENTRIES_MAX : REENTRIES_MAX;
}

/** Attempts are counted from 1 by AWS's SDKs. */
const AWS_ATTEMPT = /(?:^|;)\s*attempt=(\d{1,4})\s*(?:;|$)/;

/** Returns how often the SDK has sent the call before by itself, if it says so. */
function sdkRetriesIn(headers: Headers): number {
  const stainless = headers.get('x-stainless-retry-count');
  if (stainless !== null) return /^\d{1,4}$/.test(stainless) ? Number(stainless) : 0;
  const [, attempt = '1'] = AWS_ATTEMPT.exec(headers.get('amz-sdk-request') ?? '') ?? [];
  return Math.max(Number(attempt) - 1, 0);
}

/** The tries of one call: how often it was sent, and why it was sent again. */
export class CallAttempts {
  /** Headers of the call, which say how often its SDK has sent it before. */
  readonly #headers: Headers;
  #sent = 0;
  /** Upstreams whose groups the call may have stopped, and members. */
  readonly #stopped = new Set<string>();
  /** Places that serve nobody who calls from here. */
  readonly #closed: Upstream[] = [];
  /** Members that have refused it. */
  readonly refusedMembers = new RefusedMembers();
  /** The last answer of a member that refused it for good; null: none did, or it was not kept. */
  lastRefusal: RefusalAnswer | null = null;
  /** The upstream's message in its last refusal. null if it sent none. */
  refusalWords: string | null = null;
  #reentered = 0;
  #retried = 0;

  constructor(headers: Headers) {
    this.#headers = headers;
  }

  get sent(): number {
    return this.#sent;
  }

  noteSent(): void {
    this.#sent += 1;
  }

  /** Notes a refusal of an upstream, or of a member. True: the call has stopped the group there before. */
  noteRefused(placeId: string, { kind, retryAfterMs, words }: UpstreamSignal): boolean {
    if (kind === 'served') return false;
    this.refusalWords = words ?? this.refusalWords;
    if (!STOPPING.has(kind) && (retryAfterMs === null || !STOPPING_FOR.has(kind))) return false;
    const isRepeat = this.#stopped.has(placeId);
    this.#stopped.add(placeId);
    return isRepeat;
  }

  /** Notes that nothing that goes out to where this upstream is will be served. */
  noteClosed(upstream: Upstream): void {
    this.#closed.push(upstream);
  }

  /** Tells whether the call may go to an upstream: not to where one was that it was refused by for where it comes from. */
  mayGoTo(upstream: Upstream): boolean {
    return !this.#closed.some((one) => isSamePlace(one, upstream));
  }

  /** Tells whether the call may wait for its turn once more; counted if so. */
  mayReenter(kind: RefusalKind): boolean {
    if (this.#reentered >= reentriesMaxOf(kind)) return false;
    this.#reentered += 1;
    return true;
  }

  /** Chooses how long to wait before a retry, so that those of many calls do not come together. */
  pauseMs(): number {
    const mostMs = Math.min(RETRY_PAUSE_MAX_MS, RETRY_PAUSE_MS * 2 ** this.#retried);
    return (mostMs * (1 + Math.random())) / 2;
  }

  /**
   * Tells whether the call may go on to another member after an error at one; counted if so. Once it may whatever its
   * group says of retries: it is another place. From then on it is a call that kills its upstreams, maybe, and one more
   * retry.
   */
  mayHop(max: number, budget: RetryBudget, share: number): boolean {
    if (sdkRetriesIn(this.#headers) > 0) return false;
    if (this.#retried > 0) return this.mayRetry(max, budget, share);
    this.#retried += 1;
    return true;
  }

  /**
   * Tells whether the call may be tried once more after an error; counted if so. What the SDK retries anyway
   * is not multiplied.
   */
  mayRetry(max: number, budget: RetryBudget, share: number): boolean {
    if (this.#retried >= max || sdkRetriesIn(this.#headers) > 0) return false;
    if (!budget.take(share)) return false;
    this.#retried += 1;
    return true;
  }
}

/** Retries as a part of recent calls, so that an upstream that fails is not called still more. */
export class RetryBudget {
  #calls = 0;
  #left = BUDGET_START;

  noteCall(): void {
    this.#calls += 1;
  }

  /** Takes one retry, if calls since the last ones have earned it. */
  take(share: number): boolean {
    this.#left = Math.min(BUDGET_MAX, this.#left + this.#calls * share);
    this.#calls = 0;
    if (share === 0 || this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}

/** Tells whether two upstreams are reached at the same address, and the same way. */
export function isSamePlace(a: Upstream, b: Upstream): boolean {
  return a.baseUrl === b.baseUrl && a.via === b.via;
}

/** One turn of a call at a candidate. */
export interface CandidateAttempt {
  readonly ticket: CallTicket;
  readonly tries: CallAttempts;
  readonly listener: PositionListener | null;
  /** Whether another upstream may be tried if this one does not serve the call. */
  readonly hasNext: boolean;
  /** Timeout for the first content here if another place is left. null if there is none. */
  readonly firstTokenMs: number | null;
  /** Whether one of those is reached at another address, or another way. */
  readonly hasOtherPlace: boolean;
}
