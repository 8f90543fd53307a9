import { memberId } from '../../core/words/ids.ts';
import {
  takesOut,
  type Blame,
  type RefusalKind,
  type UpstreamSignal,
} from '../../core/words/signal.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import type { CallTicket } from '../acquire/admission.ts';
import type { PositionListener } from '../acquire/open-calls.ts';
import type { Answered } from '../results/result.ts';

/** The attempts of a call, and the members that refused it. */

/** Kinds of refusals that end when other calls end, or after a moment. */
const WAITABLE: ReadonlySet<RefusalKind> = new Set([
  'concurrency',
  'requests',
  'tokens',
  'ramp',
  'unknown',
]);

/** Kinds after which the same call may be retried, if its group allows that. */
const RETRIABLE: ReadonlySet<RefusalKind> = new Set(['overload', 'error']);

/** Whether a member failed, rather than refused. */
export function isFailure(kind: RefusalKind): boolean {
  return RETRIABLE.has(kind);
}

/** A member that has refused a call. */
interface RefusedMember {
  readonly id: string;
  /** null if the call may return to it. */
  readonly kind: RefusalKind | null;
  readonly times: number;
}

/** The members that have refused one call, and why. None of them is asked again before all have refused it. */
class RefusedMembers {
  readonly #members: Map<string, RefusedMember>;
  readonly #slow = new Set<string>();
  #isPatient = false;
  /** Refusals that may eject members, each with its group and time. */
  readonly #refusals: (Omit<Blame, 'agoMs'> & { readonly group: string; readonly at: number })[] =
    [];

  constructor(past: readonly RefusedMember[]) {
    this.#members = new Map(past.map((one) => [one.id, one]));
  }

  get all(): readonly RefusedMember[] {
    return [...this.#members.values()];
  }

  note(id: string, kind: RefusalKind): void {
    const times = (this.#members.get(id)?.times ?? 0) + 1;
    this.#members.set(id, { id, kind, times });
  }

  /** Notes a member that sent no content in time. */
  noteSlow(id: string): void {
    this.#slow.add(id);
    this.note(id, 'error');
  }

  /** Whether the call has already returned to a slow member, which may then take as long as it needs. */
  get isPatient(): boolean {
    return this.#isPatient;
  }

  /** Allows the call to return once to its slow members, without a timeout. Returns false if there are none. */
  forgetSlow(): boolean {
    if (this.#isPatient || this.#slow.size === 0) return false;
    this.#isPatient = true;
    for (const id of this.#slow) {
      const { times } = this.#members.get(id) ?? { times: 1 };
      this.#members.set(id, { id, kind: null, times: times - 1 });
    }
    return true;
  }

  /** Notes a member's own refusal. The member is to blame if another one of the group serves the call. */
  noteSaid(group: string, id: string, kind: RefusalKind, at: number): void {
    if (takesOut(kind)) this.#refusals.push({ group, member: memberId(id), kind, at });
  }

  /** The members to blame once another member of the group has served the call. */
  blamedIn(group: string, now: number): readonly Blame[] {
    const refusals = this.#refusals.filter((one) => one.group === group);
    return refusals.map(({ member, kind, at }) => ({ member, kind, agoMs: now - at }));
  }

  has(id: string): boolean {
    return (this.#members.get(id)?.kind ?? null) !== null;
  }

  get ids(): readonly string[] {
    return this.#refused.map(({ id }) => id);
  }

  /**
   * Members with a single temporary refusal. The call may return to them before all have refused it, once they serve
   * other calls.
   */
  get idsForNow(): readonly string[] {
    const forNow = this.#refused.filter(({ kind, times }) => WAITABLE.has(kind) && times === 1);
    return forNow.map(({ id }) => id);
  }

  /**
   * The refusal that waiting may help, preferring the one for concurrency, which ends soonest. null if there is none.
   */
  get waitable(): RefusalKind | null {
    const kinds = this.#refused.map(({ kind }) => kind).filter((kind) => WAITABLE.has(kind));
    return kinds.includes('concurrency') ? 'concurrency' : (kinds[0] ?? null);
  }

  get isRetriable(): boolean {
    return this.#refused.some(({ kind }) => RETRIABLE.has(kind));
  }

  /** Lets the call return to the members with temporary refusals. */
  forgetWaitable(): void {
    this.#forget(WAITABLE);
  }

  /** The same for members that failed. */
  forgetRetriable(): void {
    this.#forget(RETRIABLE);
  }

  get #refused(): readonly (RefusedMember & { readonly kind: RefusalKind })[] {
    return this.all.flatMap(({ kind, ...one }) => (kind === null ? [] : [{ ...one, kind }]));
  }

  #forget(kinds: ReadonlySet<RefusalKind>): void {
    for (const one of this.#refused) {
      if (kinds.has(one.kind)) this.#members.set(one.id, { ...one, kind: null });
    }
  }
}

/**
 * Maximum number of times that a refused call returns to the queue. It is higher for refusals of concurrency: an
 * upstream that suddenly accepts fewer calls, and counts each for longer, refuses the same call more often.
 */
const REENTRIES_MAX = 3;
const MANY_KEYS_REENTRIES_MAX = 6;

/** Retries allowed before any calls have earned some. */
const BUDGET_START = 2;

/** Maximum retries that may be saved up. */
const BUDGET_MAX = 50;

/** Pause before the first retry. It doubles with each retry, and half of it is random. */
const RETRY_PAUSE_MS = 250;
const RETRY_PAUSE_MAX_MS = 4_000;

/** Refusals that may stop a whole group for a while. Those in the second set do so only with a duration. */
const STOPPING: ReadonlySet<RefusalKind> = new Set(['requests', 'tokens', 'ramp', 'unknown']);
const STOPPING_FOR: ReadonlySet<RefusalKind> = new Set(['overload', 'long_window']);

/** A refusal that is returned to the caller if no other member serves the call. */
interface RefusalAnswer<End> {
  readonly kind: RefusalKind;
  readonly answer: End;
}

/** The attempts of a call so far, for a lease whose next request may reach another isolate. */
export interface PastAttempts {
  /** How often the call returned to the queue after a refusal, and how often it was retried after an error. */
  readonly reentered: number;
  readonly retried: number;
  /** Upstreams and members whose groups it may have stopped. */
  readonly stopped: readonly string[];
  readonly members: readonly RefusedMember[];
}

export const NO_ATTEMPTS: PastAttempts = { reentered: 0, retried: 0, stopped: [], members: [] };

function reentriesMaxOf(kind: RefusalKind): number {
  return kind === 'concurrency' ? MANY_KEYS_REENTRIES_MAX : REENTRIES_MAX;
}

/** AWS's SDKs count attempts from 1. */
const AWS_ATTEMPT = /(?:^|;)\s*attempt=(\d{1,4})\s*(?:;|$)/;

/** Returns how often the client's SDK has retried the call, if its headers report that. */
function sdkRetriesIn(headers: Headers): number {
  const stainless = headers.get('x-stainless-retry-count');
  if (stainless !== null) return /^\d{1,4}$/.test(stainless) ? Number(stainless) : 0;
  const [, attempt = '1'] = AWS_ATTEMPT.exec(headers.get('amz-sdk-request') ?? '') ?? [];
  return Math.max(Number(attempt) - 1, 0);
}

/** What one call has tried. `End` is the answer that ends a call of its kind. */
export class CallAttempts<End = Answered> {
  readonly #headers: Headers;
  #sent = 0;
  /** Upstreams and members whose groups this call may have stopped. */
  readonly #stopped: Set<string>;
  /** Upstreams that serve no calls from the addresses of this deployment. */
  readonly #closed: Upstream[] = [];
  readonly refusedMembers: RefusedMembers;
  /** The last answer of a member that finally refused the call. null if there is none, or it was not kept. */
  lastRefusal: RefusalAnswer<End> | null = null;
  /** The upstream's message in its last refusal. null if it sent none. */
  refusalWords: string | null = null;
  #reentered: number;
  #retried: number;

  constructor(headers: Headers, past: PastAttempts = NO_ATTEMPTS) {
    this.#headers = headers;
    this.#reentered = past.reentered;
    this.#retried = past.retried;
    this.#stopped = new Set(past.stopped);
    this.refusedMembers = new RefusedMembers(past.members);
  }

  get past(): PastAttempts {
    const { all: members } = this.refusedMembers;
    return {
      reentered: this.#reentered,
      retried: this.#retried,
      stopped: [...this.#stopped],
      members,
    };
  }

  get sent(): number {
    return this.#sent;
  }

  noteSent(): void {
    this.#sent += 1;
  }

  /** Notes a refusal of an upstream or of a member. Returns true if the call has stopped the group there before. */
  noteRefused(placeId: string, { kind, retryAfterMs, words }: UpstreamSignal): boolean {
    if (kind === 'served') return false;
    this.refusalWords = words ?? this.refusalWords;
    if (!STOPPING.has(kind) && (retryAfterMs === null || !STOPPING_FOR.has(kind))) return false;
    const isRepeat = this.#stopped.has(placeId);
    this.#stopped.add(placeId);
    return isRepeat;
  }

  noteClosed(upstream: Upstream): void {
    this.#closed.push(upstream);
  }

  /**
   * Returns whether the call may be sent to an upstream. It may not if that address has refused calls because of where
   * they come from.
   */
  mayGoTo(upstream: Upstream): boolean {
    return !this.#closed.some((one) => isSamePlace(one, upstream));
  }

  /** Returns whether the call may return to the queue, and counts it if so. */
  mayReenter(kind: RefusalKind): boolean {
    if (this.#reentered >= reentriesMaxOf(kind)) return false;
    this.#reentered += 1;
    return true;
  }

  /** The time to wait before a retry. It is partly random, so that the retries of many calls do not coincide. */
  pauseMs(): number {
    const longestMs = Math.min(RETRY_PAUSE_MAX_MS, RETRY_PAUSE_MS * 2 ** this.#retried);
    return (longestMs * (1 + Math.random())) / 2;
  }

  /**
   * Returns whether the call may go to another member after an error, and counts it if so. The first time it may
   * whatever the group's `retries` allow, because it is another place. From then on the call itself may be what fails
   * members, so it counts as a retry.
   */
  mayHop(max: number, budget: RetryBudget, share: number): boolean {
    if (sdkRetriesIn(this.#headers) > 0) return false;
    if (this.#retried > 0) return this.mayRetry(max, budget, share);
    this.#retried += 1;
    return true;
  }

  /**
   * Returns whether the call may be retried after an error, and counts it if so. A call that the SDK retries is not
   * retried here too, because the two would multiply.
   */
  mayRetry(max: number, budget: RetryBudget, share: number): boolean {
    if (this.#retried >= max || sdkRetriesIn(this.#headers) > 0) return false;
    if (!budget.take(share)) return false;
    this.#retried += 1;
    return true;
  }
}

/** Limits retries to a share of recent calls, so that a failing upstream does not receive many more of them. */
export class RetryBudget {
  #calls = 0;
  #left = BUDGET_START;

  noteCall(): void {
    this.#calls += 1;
  }

  /** Takes one retry if the calls since the last ones have earned it. */
  take(share: number): boolean {
    this.#left = Math.min(BUDGET_MAX, this.#left + this.#calls * share);
    this.#calls = 0;
    if (share === 0 || this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}

/** Returns whether two upstreams have the same address and the same egress. */
export function isSamePlace(a: Upstream, b: Upstream): boolean {
  return a.baseUrl === b.baseUrl && a.via === b.via;
}

export interface CandidateAttempt<End = Answered> {
  readonly ticket: CallTicket;
  readonly attempts: CallAttempts<End>;
  readonly listener: PositionListener | null;
  /** Whether another upstream follows if this one does not serve the call. */
  readonly hasNext: boolean;
  /** Timeout in milliseconds for the first content here if another place is left. null if there is none. */
  readonly firstTokenMs: number | null;
  /** Whether one of the following upstreams has another address or another egress. */
  readonly hasOtherPlace: boolean;
}

const retryBudgets = new Map<string, RetryBudget>();

/** Retries are limited for each upstream separately. */
export function retryBudgetOf(upstreamId: string): RetryBudget {
  const budget = retryBudgets.get(upstreamId) ?? new RetryBudget();
  retryBudgets.set(upstreamId, budget);
  return budget;
}
