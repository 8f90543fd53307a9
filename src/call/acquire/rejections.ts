import type { Exceeded, LimitName } from '../../core/words/settings.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { plural } from '../../core/words/figures.ts';
import type { BusyCause, Rejection } from '../../core/words/outcome.ts';
import { NO_MODEL, type Scope } from '../../core/words/signal.ts';
import { kindOfLimits } from '../../routing/implied-groups.ts';
import type { Placement } from '../../routing/placement.ts';
import { EachSecond, steadyClock } from '../../runtime/async.ts';
import { logEvent } from '../../runtime/log.ts';
import { BoundedMap } from '../../core/parts/bounded-map.ts';

/** The errors of calls that their pool rejects, and the delays after which they should retry. */

export function unavailable({ group }: Placement): ErrorReply {
  const message = `Group \`${group}\` cannot be reached at the moment. Try again shortly.`;
  return { reason: 'limiter_unavailable', message };
}

/** Minimum interval between two log lines, because every call is refused while the cap is reached. */
const cappedLogs = new EachSecond(1);

/**
 * The error reply to a call while the platform's account has reached its spending cap. Calls never bypass the group.
 */
export function capped({ group }: Placement): ErrorReply {
  if (cappedLogs.mayOneMore(steadyClock.now())) logEvent('account_capped', { group });
  const message =
    `No slot of group \`${group}\` can be granted, because the Cloudflare account of this Headgate has reached its spending cap. ` +
    'Raise the cap in the Cloudflare dashboard, or wait until the next billing period.';
  return { reason: 'account_capped', message };
}

/** The error reply to a call of a group whose members all refuse it or are ejected. */
export function allOut(group: string): ErrorReply {
  const message = `No member of group \`${group}\` can take this call. Each one is disabled, has a key that its upstream refuses, has used up its quota, or refused this call. Ask the operator to check the members.`;
  return { reason: 'members_out', message };
}

/** Bounds of the retry delay for callers of an object with too many messages. */
const OVERLOADED_MIN_MS = 1_000;
const OVERLOADED_MAX_MS = 5_000;

/** The error reply to a call whose group's object receives more messages than it can process. */
export function overloaded({ group }: Placement): ErrorReply {
  const message = `Group \`${group}\` receives more requests for slots than it can answer at the moment. Try again shortly.`;
  const retryAfterMs = OVERLOADED_MIN_MS + (OVERLOADED_MAX_MS - OVERLOADED_MIN_MS) * Math.random();
  return { reason: 'limiter_overloaded', message, retryAfterMs };
}

const WHY_DROPPED = {
  lane: 'a call in a higher lane took it. Retry later.',
  share:
    'its caller has the most queued calls, and a caller with fewer took it. Retry later, or send fewer calls at once.',
  held: 'the upstream refuses calls with its model, tier or key, and a call that can start took it. Retry later.',
  returned: 'a call that held it before the group restarted reclaimed it. Retry later.',
} as const;

/** A sentence that names the calls that the upstream refuses or limits. Empty if it refuses or limits all calls. */
function limitedTo(scope: Scope | undefined): string {
  return scope === undefined ? '' : ` The upstream refuses or limits only calls ${callsOf(scope)}.`;
}

export function replyTo(rejection: Rejection, { group }: Placement): ErrorReply {
  const { reason } = rejection;
  const { retryAfterMs } = rejection;
  const named = wordsOf(group);
  const retry = retryAfterMs === null ? { isPermanent: true } : { retryAfterMs };
  switch (rejection.reason) {
    case 'queue_full': {
      const of = { group: '', tenant: ' of this caller', agent: ' of this agent' }[rejection.of];
      const { dropped, queueLengthMax } = rejection;
      const state =
        queueLengthMax === 0
          ? 'is disabled (`queue.max_length: 0`)'
          : `is full with ${plural(queueLengthMax, 'call')}${of}`;
      const lost =
        queueLengthMax === 0
          ? ', and this call cannot start immediately. Retry later.'
          : '. Retry later.';
      const message =
        dropped === undefined
          ? `The queue of ${named} ${state}${lost}`
          : `The queue of ${named} ${state}, and this call lost its place: ${WHY_DROPPED[dropped]}`;
      return { reason, ...retry, message };
    }
    case 'queue_timeout': {
      const message = `No slot of ${named} became free within ${rejection.waitedMs} ms.${limitedTo(rejection.scope)} Retry later.`;
      return { reason, ...retry, message };
    }
    case 'busy': {
      const message = `${whyBusy(rejection, named)}, and this request does not allow queueing.`;
      return { reason, ...retry, message };
    }
    case 'paused': {
      const { until, scope } = rejection;
      const of = scope === undefined ? '' : `for calls ${callsOf(scope)} `;
      const why =
        until === null
          ? `The ${named} is paused by its operator`
          : `The ${named} is paused ${of}until ${new Date(until).toISOString()}, because its upstream is overloaded`;
      const next = until === null ? 'Retry later.' : 'Retry after that time.';
      const message = `${why}. This call waited ${rejection.waitedMs} ms. ${next}`;
      return { reason, ...retry, message, isUnforeseen: until === null };
    }
    case 'upstream_limited':
      return limitedReply(rejection, named);
    case 'infeasible': {
      const { estimateMs, isStalled = false, scope } = rejection;
      const how = isStalled ? 'will be at least' : 'is estimated at';
      const message = `The wait for a slot of ${named} ${how} ${estimateMs} ms, which is longer than this call may wait.${limitedTo(scope)} Retry later, or allow a longer wait.`;
      return { reason, ...retry, message };
    }
    case 'breaker_open': {
      const { scope } = rejection;
      const of = scope === undefined ? '' : ` ${callsOf(scope)}`;
      const message = `Too many calls${of} failed at the upstream of ${named}, so its circuit breaker is open. Retry later.`;
      return { reason, ...retry, message };
    }
    case 'members_out':
      return { ...allOut(group), ...retry };
    case 'budget_exhausted': {
      const message = `With calls in flight included, this call would exceed the budget of ${named}: ${rejection.limitUsd} USD per ${rejection.window}. Retry in the next period, or ask the operator to raise the budget.`;
      return { reason, message };
    }
    case 'draining': {
      const message = `The ${named} is being drained and accepts no new calls. Retry later.`;
      return { reason, ...retry, message, isUnforeseen: true };
    }
    case 'cancelled': {
      const message = `The operator removed this call from the queue of ${named}. Do not retry it.`;
      return { reason, message };
    }
    case 'nested': {
      const message = `This call would wait in ${named} for a slot that its own parent call holds. Run fewer nested calls at once, or ask the operator to add slots.`;
      return { reason, message };
    }
    case 'never_fits': {
      const { exceeded, slotsPerCallMax } = rejection;
      const message =
        exceeded === undefined
          ? `This call asks for more than ${plural(slotsPerCallMax, 'slot')} of ${named}, the maximum for one call. Send a lower \`headgate-weight\`, or request fewer \`slots\` for a lease.`
          : tooManyTokens(exceeded, group);
      return { reason, message };
    }
  }
}

/** Why a call cannot start although slots are free, by cause. */
const WHY_BUSY: Readonly<Record<BusyCause, (named: string, ms: number) => string>> = {
  settling: (named, ms) =>
    `The ${named} starts no calls for the next ${ms} ms, because it has just restarted, moved or verified its first key, and earlier calls go first`,
  cap: (named) => `This caller or agent already uses its maximum number of slots in ${named}`,
  rates: (named) =>
    `The ${named} has free slots, but its request or token limits are currently used up`,
  member: (named) => `The member of ${named} that this call prefers has no free slot`,
  elsewhere: (named) =>
    `The ${named} has free slots, but another group that this call needs is full`,
  order: (named) => `Earlier calls get the next slots of ${named}`,
  breaker: (named) => `The circuit breaker of the ${named} is waiting for the result of a probe`,
};

/** Why a call that may not wait cannot start. */
function whyBusy(
  { slotsMax, scope, cause, retryAfterMs }: Extract<Rejection, { reason: 'busy' }>,
  named: string,
): string {
  if (cause !== undefined) return WHY_BUSY[cause](named, retryAfterMs);
  // The preferred member has no limit, so the call lacks room at the other members.
  if (slotsMax === Infinity) return `No slot of ${named} is free for this call`;
  const those = scope === undefined ? '' : `that the upstream allows for calls ${callsOf(scope)} `;
  if (slotsMax === 0) return `The ${named} currently has no slots (a limit may be 0)`;
  if (slotsMax === 1) return `The only slot ${those}of ${named} is in use`;
  return `All ${slotsMax} slots ${those}of ${named} are in use`;
}

/**
 * The error reply to a call while a limit of the upstream is used up. Its status is that of the upstream's own refusal.
 */
function limitedReply(
  {
    retryAfterMs,
    waitedMs,
    until,
    probeAt,
    words,
    scope,
  }: Extract<Rejection, { reason: 'upstream_limited' }>,
  named: string,
): ErrorReply {
  const of = scope === undefined ? '' : ` ${callsOf(scope)}`;
  const quoted = words === null ? '' : ` Its message: "${words}"`;
  const probed =
    probeAt === null
      ? ''
      : ` Headgate probes the limit with one call at ${new Date(probeAt).toISOString()}.`;
  const message =
    `The upstream of ${named} refuses calls${of} because of its own limit until ${new Date(until).toISOString()}.` +
    `${quoted}${probed} This call waited ${waitedMs} ms. Retry after that time, or use another model or upstream.`;
  const endsInMs = Math.max(0, until - Date.now());
  const retry = retryAfterMs === null ? { isPermanent: true, endsInMs } : { retryAfterMs };
  return { reason: 'upstream_limited', message, ...retry };
}

/** Describes the calls of a scope, to follow the word "calls". It omits the key's fingerprint. */
function callsOf({ model, tier, credential }: Scope): string {
  const names = [
    ...(model === null
      ? []
      : [model === NO_MODEL ? 'that name no model' : `of model \`${model}\``]),
    ...(tier === null ? [] : [`in service tier \`${tier}\``]),
    ...(credential === null ? [] : ['with this provider key']),
  ];
  return names.join(' ');
}

/** Words for each limit: what counts towards it, and the period. */
const LIMIT_WORDS: Record<LimitName, readonly [what: string, time: string]> = {
  rpm: ['request', 'minute'],
  rpd: ['request', '24 hours'],
  tpm: ['tokens, including the output that it allows', 'minute'],
  tpd: ['tokens, including the output that it allows', '24 hours'],
  itpm: ['input tokens', 'minute'],
  otpm: ['output tokens that it allows', 'minute'],
  startsPerS: ['request', 'second'],
};

function tooManyTokens({ limit, limitAmount, amount }: Exceeded, group: string): string {
  const [what, time] = LIMIT_WORDS[limit];
  const article = time === 'minute' ? 'a' : 'any';
  return `This call is estimated at ${amount} ${what}, but ${wordsOf(group)} allows ${limitAmount} in ${article} ${time} (\`${limit}\`). Make the call smaller, or raise the limit.`;
}

/** Words for a group. A group of limits on a key or a team is called that key or team. */
function wordsOf(group: string): string {
  const kind = kindOfLimits(group);
  return kind === null ? `group \`${group}\`` : `${kind} \`${group.slice(kind.length + 1)}\``;
}

/** The last retry of a caller that was rejected for an unknown time. */
interface WaiterReturn {
  readonly times: number;
  readonly at: number;
  /** A retry after this time followed the reported delay. */
  readonly untilAt: number;
}

/** Maximum callers that are remembered. The one rejected longest ago is forgotten first. */
export const RETURNS_MAX = 1_000;

/** A caller that was not rejected for this long starts with the first delay again. */
const FORGOTTEN_MS = 300_000;

/** The first delay that a group reports. Up to half of it is added at random. */
const STOPPED_MS = 15_000;

/** How long queued bodies mostly leave no room. Some of their calls get slots meanwhile. */
const MANY_KEYS_MS = 2_000;

/** How long an object is usually unreachable. In most cases it is being moved or deployed. */
const UNREACHED_MS = 1_000;

/** Maximum delay. With the random half it stays within a minute. */
const GROWN_MAX_MS = 40_000;

/**
 * Spaces the retries of callers that are rejected for an unknown time. The delay doubles with each retry, up to a
 * minute. Concurrent rejections of one caller count as one. The state belongs to the isolate: a group's object
 * hibernates between the retries of a caller, and storing them would cost more than they do.
 */
export class WaiterReturns {
  readonly #byCaller = new BoundedMap<string, WaiterReturn>(RETURNS_MAX);

  get size(): number {
    return this.#byCaller.size;
  }

  /** The rejection that this caller receives at `now`. */
  space(refusal: ErrorReply, callerId: string, now: number): ErrorReply {
    const firstMs = firstMsOf(refusal);
    if (firstMs === null) return refusal;
    const { times } = this.#note(callerId, firstMs, now);
    const retryAfterMs = (refusal.retryAfterMs ?? firstMs) * growth(firstMs, times);
    return { ...refusal, retryAfterMs };
  }

  #note(callerId: string, firstMs: number, now: number): WaiterReturn {
    const known = this.#byCaller.get(callerId);
    const noted = known !== undefined && now < known.untilAt ? known : after(known, firstMs, now);
    this.#byCaller.set(callerId, noted);
    return noted;
  }
}

function after(known: WaiterReturn | undefined, firstMs: number, now: number): WaiterReturn {
  const isFirst = known === undefined || now - known.at > FORGOTTEN_MS;
  const times = isFirst ? 0 : known.times + 1;
  return { times, at: now, untilAt: now + firstMs * growth(firstMs, times) };
}

function growth(firstMs: number, times: number): number {
  return Math.min(2 ** times, GROWN_MAX_MS / firstMs);
}

/** null if the end of the wait is known, or there is none. */
function firstMsOf({ reason, isUnforeseen, retryAfterMs }: ErrorReply): number | null {
  if (reason === 'limiter_unavailable') return UNREACHED_MS;
  if (reason === 'too_many_bytes_waiting') return MANY_KEYS_MS;
  return isUnforeseen === true && retryAfterMs !== undefined ? STOPPED_MS : null;
}

/** Callers that retry while it is unknown when the wait ends. */
export const returns = new WaiterReturns();
