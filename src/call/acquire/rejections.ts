import type { Exceeded, LimitName } from '../../core/words/limits.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import type { BusyCause, Rejection } from '../../core/words/rejection.ts';
import { NO_MODEL, type Scope } from '../../core/words/scope.ts';
import { kindOfLimits } from '../../routing/key-groups.ts';
import type { Placement } from '../../routing/placement.ts';
import { EachSecond } from '../../runtime/each-second.ts';
import { logEvent } from '../../runtime/log.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';

/** The error reply to a call whose group's object cannot be reached. */
export function unavailable({ group }: Placement): ErrorReply {
  const message = `The group ${group} cannot be reached at the moment. Try again shortly.`;
  return { reason: 'limiter_unavailable', message };
}

/** Minimum time between two log lines: every call is refused while the cap is reached. */
const cappedLogs = new EachSecond(1);

/** The error reply to a call while the platform's account has reached its spending cap. Calls never bypass the group. */
export function capped({ group }: Placement): ErrorReply {
  if (cappedLogs.mayOneMore(steadyClock.now())) logEvent('account_capped', { group });
  const message =
    `No slot of the group ${group} can be granted, because the Cloudflare account of this Headgate has reached its spending cap. ` +
    'Raise the cap in the Cloudflare dashboard, or wait until the next billing period.';
  return { reason: 'account_capped', message };
}

/** The error reply to a call of a group whose members are all out. */
export function allOut(group: string): ErrorReply {
  const message = `No member of the group ${group} takes the call: their keys are refused, their quotas used up, they are switched off, or they have refused it.`;
  return { reason: 'members_out', message };
}

/** Bounds of the time after which a caller of an object with too many messages may come again. */
const OVERLOADED_MIN_MS = 1_000;
const OVERLOADED_MAX_MS = 5_000;

/** The error reply to a call whose group's object gets more messages than it takes. */
export function overloaded({ group }: Placement): ErrorReply {
  const message = `More calls ask for slots of the group ${group} than it can answer at the moment. Try again shortly.`;
  const retryAfterMs = OVERLOADED_MIN_MS + (OVERLOADED_MAX_MS - OVERLOADED_MIN_MS) * Math.random();
  return { reason: 'limiter_overloaded', message, retryAfterMs };
}

const WHY_DROPPED = {
  lane: 'a call in a higher lane took it. Retry later.',
  share:
    'its caller has the most calls waiting, and a caller with fewer took it. Retry later, or send fewer calls at once.',
  held: 'the upstream stops calls of its model, tier or key, and a call that can start took it. Retry later.',
  returned: 'a call that had it before the group restarted took it back. Retry later.',
} as const;

/** A sentence that names the calls that the upstream stops or limits. Empty if it stops or limits all calls. */
function limitedTo(scope: Scope | undefined): string {
  return scope === undefined ? '' : ` The upstream stops or limits only calls ${callsOf(scope)}.`;
}

/** The error reply that tells a caller of a group's rejection. */
export function replyTo(rejection: Rejection, { group }: Placement): ErrorReply {
  const { reason } = rejection;
  const { retryAfterMs } = rejection;
  const named = wordsOf(group);
  const retry = retryAfterMs === null ? { isPermanent: true } : { retryAfterMs };
  switch (rejection.reason) {
    case 'queue_full': {
      const of = { group: '', tenant: ' of this caller', agent: ' of this agent' }[rejection.of];
      const { dropped, queueLengthMax } = rejection;
      const message =
        dropped === undefined
          ? `The queue of the ${named} is full: ${queueLengthMax} calls${of} are waiting.`
          : `The queue of the ${named} is full with ${queueLengthMax} calls${of}, and this call lost its place: ${WHY_DROPPED[dropped]}`;
      return { reason, ...retry, message };
    }
    case 'queue_timeout': {
      const message = `No slot of the ${named} became free within ${rejection.waitedMs} ms.${limitedTo(rejection.scope)}`;
      return { reason, ...retry, message };
    }
    case 'busy': {
      const message = `${whyBusy(rejection, named)}, and this request does not allow queueing.`;
      return { reason, ...retry, message };
    }
    case 'paused': {
      const { until = null, scope } = rejection;
      const of = scope === undefined ? '' : `for calls ${callsOf(scope)} `;
      const why =
        until === null
          ? `The ${named} is paused by its operator`
          : `The ${named} is paused ${of}until ${new Date(until).toISOString()}, because its upstream is overloaded`;
      const message = `${why}. The call waited ${rejection.waitedMs} ms.`;
      return { reason, ...retry, message, isUnforeseen: until === null };
    }
    case 'upstream_limited':
      return limitedReply(rejection, named);
    case 'infeasible': {
      const { estimateMs, isStalled = false, scope } = rejection;
      const how = isStalled ? 'will be at least' : 'is estimated at';
      const message = `The wait for a slot of the ${named} ${how} ${estimateMs} ms, which is longer than this call may wait.${limitedTo(scope)}`;
      return { reason, ...retry, message };
    }
    case 'breaker_open': {
      const { scope } = rejection;
      const of = scope === undefined ? '' : ` ${callsOf(scope)}`;
      const message = `Too many calls${of} failed at the upstream of the ${named}, so its circuit breaker is open. Retry later.`;
      return { reason, ...retry, message };
    }
    case 'members_out':
      return { ...allOut(group), ...retry };
    case 'budget_exhausted': {
      const message = `With what was spent and what is in flight the call would exceed the budget of the ${named}: ${rejection.limitUsd} USD per ${rejection.window}.`;
      return { reason, message };
    }
    case 'draining': {
      const message = `The ${named} is being drained and takes no new calls.`;
      return { reason, ...retry, message, isUnforeseen: true };
    }
    case 'cancelled': {
      const message = `The operator took the call out of the queue of the ${named}.`;
      return { reason, message };
    }
    case 'nested': {
      const message = `The call would wait in the ${named} for a slot that its own parent holds.`;
      return { reason, message };
    }
    case 'never_fits': {
      const { exceeded, slotsPerCallMax } = rejection;
      const message =
        exceeded === undefined
          ? `headgate-weight: a call may take at most ${slotsPerCallMax} slots of the ${named}.`
          : tooManyTokens(exceeded, group);
      return { reason, message };
    }
  }
}

/** Why a call cannot start although slots are free, by cause. */
const WHY_BUSY: Readonly<Record<BusyCause, (named: string, ms: number) => string>> = {
  settling: (named, ms) =>
    `The ${named} starts no calls for the next ${ms} ms, because it has just restarted, moved or verified its first key, and earlier calls go first`,
  cap: (named) => `This caller or agent has as many slots of the ${named} in use as one may have`,
  rates: (named) =>
    `The ${named} has free slots, but its limits of requests or tokens are currently used up`,
  member: (named) => `The member of the ${named} that this call prefers has no free slot`,
  elsewhere: (named) =>
    `The ${named} has free slots, but another group that this call needs is full`,
  order: (named) => `Earlier calls get the next slots of the ${named}`,
  breaker: (named) => `The circuit breaker of the ${named} is waiting for the result of a probe`,
};

/** Why a call that may not wait cannot start. */
function whyBusy(
  { slotsMax, scope, cause, retryAfterMs }: Extract<Rejection, { reason: 'busy' }>,
  named: string,
): string {
  if (cause !== undefined) return WHY_BUSY[cause](named, retryAfterMs);
  // Of a member without a limit the others may be all that is left.
  if (slotsMax === Infinity) return `There is no room in the ${named}`;
  const those = scope === undefined ? '' : `that the upstream takes for calls ${callsOf(scope)} `;
  return `All ${slotsMax} slots ${those}of the ${named} are in use`;
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
  const said = words === null ? '' : ` Its message: "${words}"`;
  const probed =
    probeAt === null
      ? ''
      : ` Headgate probes the limit with one call at ${new Date(probeAt).toISOString()}.`;
  const message =
    `The upstream of the ${named} refuses calls${of} because of its own limit until ${new Date(until).toISOString()}.` +
    `${said}${probed} This call waited ${waitedMs} ms. Retry after that time, or use another model or upstream.`;
  const endsInMs = Math.max(0, until - Date.now());
  const retry = retryAfterMs === null ? { isPermanent: true, endsInMs } : { retryAfterMs };
  return { reason: 'upstream_limited', message, ...retry };
}

/** Describes the calls of a scope, to follow the word "calls". It omits the key's fingerprint. */
function callsOf({ model, tier, credential }: Scope): string {
  const names = [
    ...(model === null
      ? []
      : [model === NO_MODEL ? 'that name no model' : `of the model ${model}`]),
    ...(tier === null ? [] : [`in the service tier ${tier}`]),
    ...(credential === null ? [] : ['with this provider key']),
  ];
  return names.join(' ');
}

/** Words for each limit: the thing that counts towards it, and the time. */
const LIMIT_WORDS: Record<LimitName, readonly [what: string, time: string]> = {
  rpm: ['request', 'minute'],
  rpd: ['request', '24 hours'],
  tpm: ['tokens, with the output that it allows', 'minute'],
  tpd: ['tokens, with the output that it allows', '24 hours'],
  itpm: ['tokens of input', 'minute'],
  otpm: ['tokens of output that it allows', 'minute'],
  startsPerS: ['request', 'second'],
};

function tooManyTokens({ limit, limitAmount, amount }: Exceeded, group: string): string {
  const [what, time] = LIMIT_WORDS[limit];
  const article = time === 'minute' ? 'a' : 'any';
  return `The call is estimated at ${amount} ${what}, and the ${wordsOf(group)} lets ${limitAmount} pass in ${article} ${time} (${limit}). Make the call smaller, or raise the limit.`;
}

/** Words for a group: one that holds the limits of a key or a team is that to callers. */
function wordsOf(group: string): string {
  const kind = kindOfLimits(group);
  return kind === null ? `group ${group}` : `${kind} ${group.slice(kind.length + 1)}`;
}
