import type { InstantMs } from './words/ids.ts';
import type { Rejection } from './words/outcome.ts';
import { HOLD_SAMPLES_MIN, type Exceeded } from './words/settings.ts';
import type { Scope } from './words/signal.ts';
import type { Ticket, Demand } from './words/ticket.ts';
import { demandAt, demandOf } from './parts/demand.ts';
import { isPaused, nextProbeAt } from './parts/pause.ts';
import type { Waiter } from './parts/queue.ts';
import { exceededBy } from './parts/rates.ts';
import { budgetBlock, budgetLeft } from './parts/spend.ts';
import {
  requestFreeAt,
  slotsMaxAt,
  blockFor,
  scopesHolding,
  slotsOfScope,
  type Block,
} from './capacity.ts';
import {
  estimateWaitMs,
  isStalled,
  retryAfterMs,
  retryAtEndMs,
  retryBehindMs,
  retryUnforeseenMs,
} from './estimate.ts';
import type { ScopeLimiter, Ledger, Member } from './member.ts';
import { isSplit, notExcluded, type GroupState } from './state.ts';
import { turnsAhead } from './order.ts';
import { isWideEnough } from './placing.ts';
import { aboutCalls, scopesOf } from './scopes.ts';
import { callToReject, fullness } from './full-queue.ts';

/** When a call is rejected instead of queued. */

/** Maximum length of a stop for which the rejection contains Retry-After. */
const LONG_BLOCK_MS = 600_000;

/** Returns why a new call is rejected before it is queued. null if it is not. */
export function rejectionAtDoor(state: GroupState, ticket: Ticket): Rejection | null {
  const isNew = ticket.enqueuedAt >= state.drainsFrom;
  if (!state.settings.isDraining || !isNew) return rejectionOfTooLarge(state, ticket);
  return { reason: 'draining', retryAfterMs: retryUnforeseenMs(ticket.id) };
}

/**
 * Returns why a ticket can never be granted, because it needs more slots, requests or tokens than the limits ever
 * allow. null if it can. Such a ticket would block all later ones until its deadline. A limit of 0 stops all calls for
 * a while, and makes none too large.
 */
export function rejectionOfTooLarge(state: GroupState, ticket: Ticket): Rejection | null {
  const { settings, controls } = state;
  const { slotsPerCallMax, slotsMax, slotsMaxEach, slotsMaxEachAgent } = settings;
  const ofAgent = ticket.holder.agent === null ? Infinity : slotsMaxEachAgent;
  const members = notExcluded(state, ticket);
  const widest = Math.max(...members.map((member) => member.settings.slotsMax));
  const all = [slotsPerCallMax, slotsMax, widest, slotsMaxEach, ofAgent];
  const most = Math.min(...all.filter((bound) => bound > 0));
  const tooWide = { reason: 'never_fits', slotsPerCallMax: most, retryAfterMs: null } as const;
  if (ticket.slots > most) return tooWide;
  const demand = demandOf(controls.factors, state.guessRates, ticket);
  const wide = members.filter((member) => isWideEnough(member.settings, ticket.slots));
  const exceeded = exceededBy(settings.rates, demand) ?? exceededEverywhere(wide, demand);
  return exceeded === null ? null : { ...tooWide, exceeded };
}

/** Returns the limit of the first member that a call exceeds, if it exceeds one at every member. null otherwise. */
function exceededEverywhere(members: readonly Member[], demand: Demand): Exceeded | null {
  const exceeded = members.map(({ settings }) => exceededBy(settings.rates, demand));
  return exceeded.includes(null) ? null : (exceeded[0] ?? null);
}

/** A rejection of a waiter that makes room (`evicted`), or of the new call itself. */
interface RejectionInQueue {
  readonly rejection: Rejection;
  readonly evicted: Waiter | null;
}

/** Returns why a new call may not stay in the queue, or which waiter it replaces. null if it waits. */
export function rejectionInQueue(
  state: GroupState,
  waiter: Waiter,
  now: InstantMs,
): RejectionInQueue | null {
  const { ticket } = waiter;
  const stopMs = (blockFor(state, ticket, now)?.until ?? now) - now;
  const ahead = turnsAhead(state, waiter, now);
  const inQueueMs = estimateWaitMs(state, ahead, now);
  const estimateMs = stopMs === Infinity ? inQueueMs : Math.max(inQueueMs, Math.round(stopMs));
  const retry = Math.max(
    retryAfterMs(estimateMs, ticket.id),
    retryBehindMs(state, ahead, ticket.id, now),
  );
  const reject = (rejection: Rejection): RejectionInQueue => ({ rejection, evicted: null });
  const unaffordable = rejectionOfUnaffordable(state, waiter, now);
  if (unaffordable !== null) return reject(unaffordable);
  const stopped = rejectionOfStopped(state, waiter, now);
  if (stopped !== null) return reject(stopped);
  if (!ticket.wait) {
    return reject({ reason: 'busy', ...slotsFor(state, waiter, now), retryAfterMs: retry });
  }
  const full = fullness(state, waiter);
  const replaced = full === null ? null : callToReject(state, waiter, full.of, now);
  if (full !== null && replaced === null) {
    return reject({ reason: 'queue_full', ...full, retryAfterMs: retry });
  }
  // Without samples the estimate is a guess, and a pause may end at any time. When a request becomes available is
  // certain, because requests, unlike tokens, are rarely refunded early.
  const isHopeless = requestFreeAt(state, now) > Math.max(now, waiter.deadlineAt);
  const isGuess = !isHopeless && (state.holdSamples < HOLD_SAMPLES_MIN || state.settings.paused);
  if (!isGuess && now + estimateMs > waiter.deadlineAt) {
    const about = {
      ...(isHopeless ? {} : scopeFor(state, waiter, now)),
      ...(state.slotsInUse > 0 && isStalled(state, now) && { isStalled: true as const }),
    };
    return reject({ reason: 'infeasible', estimateMs, retryAfterMs: retry, ...about });
  }
  if (full === null || replaced === null) return null;
  const { waiter: evicted, why: dropped } = replaced;
  const itsRetry = retryAtEndMs(state, evicted.ticket.id, now);
  return { rejection: { reason: 'queue_full', ...full, dropped, retryAfterMs: itsRetry }, evicted };
}

/** Returns the slots available to a waiter, and the scope that limits them. */
function slotsFor(
  state: GroupState,
  waiter: Waiter,
  now: InstantMs,
): { readonly slotsMax: number; readonly scope?: Scope } {
  const ofAll = slotsMaxAt(state, now);
  const holding = scopesHolding(state, waiter, now).filter((one) => slotsOfScope(one) < ofAll);
  const [least] = holding.toSorted((a, b) => slotsOfScope(a) - slotsOfScope(b));
  if (least !== undefined) return { slotsMax: slotsOfScope(least), ...aboutCalls(least) };
  const [sole] = state.serving;
  const isLearned = !isSplit(state) && sole !== undefined && sole.controls.ceiling.slots !== null;
  return { slotsMax: ofAll, ...(isLearned && aboutCalls(sole)) };
}

/** Returns the scope that keeps a waiter from starting, if there is one. */
function scopeFor(state: GroupState, waiter: Waiter, now: InstantMs): { readonly scope?: Scope } {
  const block = blockFor(state, waiter.ticket, now);
  if (block !== null) return block.scope === undefined ? {} : { scope: block.scope };
  const { slotsMax, scope } = slotsFor(state, waiter, now);
  const isHeld = scopesHolding(state, waiter, now).length > 0;
  const isFull = state.slotsInUse + waiter.demand.slots > slotsMax;
  return scope !== undefined && (isHeld || isFull) ? { scope } : {};
}

/** Returns the rejection of a waiter that a stop would hold beyond its deadline. null if there is no such stop. */
export function rejectionOfStopped(
  state: GroupState,
  { ticket, deadlineAt }: Waiter,
  now: InstantMs,
): Rejection | null {
  const patientUntil = ticket.wait ? deadlineAt : now;
  const waitedMs = ticket.wait ? Math.max(0, Math.round(now - ticket.enqueuedAt)) : 0;
  const block = blockFor(state, ticket, now);
  const isTooLong = block !== null && block.until > patientUntil;
  // An operator's pause ends only when the operator resumes the group.
  if (state.settings.paused && (isTooLong || !ticket.wait)) {
    const retry = retryUnforeseenMs(ticket.id);
    return { reason: 'paused', waitedMs, retryAfterMs: retry, until: null };
  }
  if (!isTooLong) return null;
  const isLong = block.until - now > LONG_BLOCK_MS;
  const retry = isLong ? null : retryAfterMs(block.until - now, ticket.id);
  return rejectionOfBlock(state, ticket, block, { waitedMs, retryAfterMs: retry }, now);
}

/**
 * Returns the reason of a stop. A limit of the upstream takes precedence over ejected members, because it ends
 * automatically.
 */
function rejectionOfBlock(
  state: GroupState,
  ticket: Ticket,
  { reason, until, scope, limit }: Block,
  {
    waitedMs,
    retryAfterMs: retry,
  }: { readonly waitedMs: number; readonly retryAfterMs: number | null },
  now: InstantMs,
): Rejection {
  const limited = reason === 'breaker_open' ? null : soonestLimit(state, ticket, now);
  if (limited !== null) {
    const { pause } = limited.controls;
    const { words, until: end } = pause;
    const about = { until: end, probeAt: nextProbeAt(pause), words, ...aboutCalls(limited) };
    return { reason: 'upstream_limited', waitedMs, retryAfterMs: retry, ...about };
  }
  const about = scope === undefined ? {} : { scope };
  if (limit !== undefined) {
    const { words } = limit;
    const reported = { waitedMs, retryAfterMs: retry, until, probeAt: null, words };
    return { reason: 'upstream_limited', ...reported, ...about };
  }
  if (reason === 'paused') return { reason, waitedMs, retryAfterMs: retry, until, ...about };
  return { reason, retryAfterMs: retry, ...about };
}

/** Returns the limit pause that ends first. null if no serving member has one. */
function soonestLimit(
  state: GroupState,
  ticket: Ticket,
  now: InstantMs,
): Member | ScopeLimiter | null {
  const untilOf = ({ controls }: Member | ScopeLimiter): InstantMs => controls.pause.until;
  let soonest: Member | ScopeLimiter | null = null;
  for (const member of notExcluded(state, ticket)) {
    if (member.controls.outage.reason !== null) continue;
    const limiters = [member, ...scopesOf(member, ticket.holder)];
    const [longest] = limiters
      .filter(({ controls: { pause } }) => isPaused(pause, now) && !pause.isOverload)
      .toSorted((a, b) => untilOf(b) - untilOf(a));
    if (longest === undefined) continue;
    if (soonest === null || untilOf(longest) < untilOf(soonest)) soonest = longest;
  }
  return soonest;
}

/**
 * Returns the budget that a call does not fit into at any member. null if some member has room in all budgets. Calls in
 * flight count as spent.
 */
export function rejectionOfUnaffordable(
  state: GroupState,
  { demand, ticket }: Waiter,
  now: InstantMs,
): Rejection | null {
  if (!isSplit(state)) return exhausted(state, demand, now);
  const ofEach = notExcluded(state, ticket).map((member) => {
    const there = demandAt(demand, member.id);
    return exhausted(state, there, now) ?? exhausted(member, there, now);
  });
  return ofEach.includes(null) ? null : (ofEach[0] ?? null);
}

function exhausted(
  { settings: { budgets }, controls }: Pick<Ledger, 'settings' | 'controls'>,
  { usd }: Demand,
  now: InstantMs,
): Rejection | null {
  const block = budgetBlock(controls.spend, budgets, usd, now);
  if (block === null) return null;
  const limits = { hour: budgets.perHourUsd, day: budgets.perDayUsd, month: budgets.perMonthUsd };
  const limitUsd = limits[block.period] ?? 0;
  const leftUsd = budgetLeft(controls.spend, block.period, limitUsd, now);
  const amounts = { limitUsd, leftUsd, wantedUsd: usd };
  return { reason: 'budget_exhausted', window: block.period, ...amounts, retryAfterMs: null };
}

/** Returns the rejection of a waiter at its deadline, with what it waited for. */
export function rejectionAtDeadline(state: GroupState, waiter: Waiter, now: InstantMs): Rejection {
  const { ticket } = waiter;
  const waitedMs = Math.max(0, Math.round(now - ticket.enqueuedAt));
  if (state.settings.paused) {
    const retry = retryUnforeseenMs(ticket.id);
    return { reason: 'paused', waitedMs, retryAfterMs: retry, until: null };
  }
  const retry = retryAtEndMs(state, ticket.id, now);
  const block = blockFor(state, ticket, now);
  if (block === null || block.reason === 'breaker_open') {
    const about = scopeFor(state, waiter, now);
    return { reason: 'queue_timeout', waitedMs, retryAfterMs: retry, ...about };
  }
  return rejectionOfBlock(state, ticket, block, { waitedMs, retryAfterMs: retry }, now);
}
