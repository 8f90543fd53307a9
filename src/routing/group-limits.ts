import type { GroupConfig } from '../contract/config/config.ts';
import type { RateStatus } from '../contract/status.ts';
import { BURST_MS, limitsOf, MINUTE_MS } from '../core/parts/rate-limits.ts';
import { leftOf, type RateUse } from '../core/parts/rates.ts';
import type { InstantMs } from '../core/words/ids.ts';
import type { LimitName, RateSettings, GroupSettings } from '../core/words/settings.ts';
import type { Lane } from '../core/words/ticket.ts';
import type { MemberConfig } from '../contract/config/members.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { PRICE_LISTS, priceListId, priceOf, type Price } from '../providers/prices/price-table.ts';
import { isPrivateHost } from '../runtime/origin.ts';
import { membersOf } from './members.ts';

/** The limits of a group in the terms of the core: slots, rates, waits, and what tokens cost. */

/** Limits whose name in the configuration differs. */
const NAMES: Partial<Record<LimitName, string>> = { startsPerS: 'starts_per_s' };

export function ratesOf(
  limits: Omit<GroupConfig['limits'], 'max_weight'>,
): Pick<GroupSettings, 'rates' | 'budgets' | 'isMetered'> {
  const { rpm, tpm, itpm, otpm, rpd, tpd, starts_per_s: startsPerS, budget_usd: budget } = limits;
  const burstMs = limits.burst === null ? BURST_MS : limits.burst * MINUTE_MS;
  const rates = { rpm, tpm, itpm, otpm, rpd, tpd, startsPerS };
  const budgets = {
    perHourUsd: budget.per_hour,
    perDayUsd: budget.per_day,
    perMonthUsd: budget.per_month,
  };
  const isMetered = [...Object.values(rates), ...Object.values(budgets)].some(
    (limit) => limit !== null,
  );
  return { rates: { ...rates, burstMs }, budgets, isMetered };
}

export function rateStatuses(
  rates: RateUse,
  settings: RateSettings,
  now: InstantMs,
): Record<string, RateStatus> {
  const left = leftOf(rates, settings, now);
  return Object.fromEntries(
    limitsOf(settings).map(({ name }) => [
      NAMES[name] ?? name,
      { limit: settings[name] ?? 0, left: Math.floor(left[name] ?? 0) },
    ]),
  );
}

/** Returns the slots of a group: its own limit, and at most the sum over its members. null means unlimited. */
export function configuredSlots({ limits, members }: GroupConfig): number | null {
  const ofAll = limits.max_concurrency;
  if (members.length === 0) return ofAll;
  const enabled = members.filter((member) => member.enabled);
  const ofEach = enabled.map((member) => member.limits.max_concurrency ?? Infinity);
  const slots = Math.min(
    ofAll ?? Infinity,
    ofEach.reduce((sum, each) => sum + each, 0),
  );
  return Number.isFinite(slots) ? slots : null;
}

type Queueing = Pick<GroupConfig, 'queue'>;

/** Maximum wait of a lane's calls in a group, instead of the group's time-out. null if the lane has none. */
export function laneTimeoutMs(config: Queueing, lane: Lane): number | null {
  return config.queue.lane_timeouts_ms[lane];
}

/** Maximum wait of any call in a group, whatever its lane, unless its key sets one. */
export function longestTimeoutMs(config: Queueing): number {
  const { timeout_ms: ofGroup, lane_timeouts_ms: byLane } = config.queue;
  return Math.max(ofGroup, ...Object.values(byLane).filter((ms) => ms !== null));
}

type MeteredLimits = Omit<GroupConfig['limits'], 'max_weight'>;
type BudgetLimits = Pick<MeteredLimits, 'budget_usd'>;

/**
 * Whether a group counts tokens or cost of every call, so that bodies are read and usage is estimated before a call.
 */
export function countsTokens(group: GroupConfig): boolean {
  if (group.track_usage === 'always' || areOfTokens(group.limits)) return true;
  return membersOf(group).some(({ config }) => areOfTokens(config.limits));
}

/** Whether the usage in responses counts in the costs of a group. null means a group that is not configured. */
export function countsReports(group: GroupConfig | null): boolean {
  return group === null || group.track_usage !== 'off' || countsTokens(group);
}

function areOfTokens(limits: MeteredLimits): boolean {
  const { tpm, itpm, otpm, tpd } = limits;
  return [tpm, itpm, otpm, tpd].some((limit) => limit !== null) || hasBudget(limits);
}

export function hasBudget({ budget_usd: budget }: BudgetLimits): boolean {
  return budget.per_hour !== null || budget.per_day !== null || budget.per_month !== null;
}

type Priced = Pick<Upstream, 'id' | 'dialect' | 'prices' | 'isKeyless' | 'baseUrl'>;

/** Whether prices of an upstream are known: configured ones, or those of its provider. */
export function hasPrices(upstream: Priced): boolean {
  return Object.keys(upstream.prices).length > 0 || priceListId(upstream) in PRICE_LISTS;
}

const free = new WeakMap<Priced, boolean>();

/**
 * Whether calls to an upstream cost 0 USD. This is the case for a server of the operator without prices: on a private
 * address, or without a key (`auth: none`).
 */
export function isFree(upstream: Priced): boolean {
  let known = free.get(upstream);
  if (known === undefined) {
    const isOwn = upstream.isKeyless || isPrivateHost(new URL(upstream.baseUrl).hostname);
    known = isOwn && !hasPrices(upstream);
    free.set(upstream, known);
  }
  return known;
}

interface MeteredCall {
  readonly upstream: Upstream;
  readonly model: string | null;
}

/**
 * Whether the cost of a call is known where a budget of its group or member needs it. `member` is null without members.
 */
export function isPriced(
  located: MeteredCall,
  group: GroupConfig,
  member: MemberConfig | null,
): boolean {
  const isBudgeted = hasBudget(group.limits) || (member !== null && hasBudget(member.limits));
  if (group.dry_run || !isBudgeted) return true;
  if (priceAt(located) !== null || isFree(located.upstream)) return true;
  return (member !== null && fallbackOf(member) !== null) || fallbackOf(group) !== null;
}

export const FREE = priceOf('', '*', { '*': { input: 0, output: 0 } });

export function fallbackOf({ limits }: Pick<MemberConfig, 'limits'>): Price | null {
  const { fallback_price: fallback } = limits.budget_usd;
  return fallback === null ? null : priceOf('', '*', { '*': fallback });
}

export function priceAt({ upstream, model }: MeteredCall): Price | null {
  const aliased = model === null ? null : aliasedModel(upstream, model);
  return priceOf(priceListId(upstream), aliased, upstream.prices);
}

/** Returns the model of an alias. As in matching, aliases are compared in lower case. */
export function aliasedModel({ aliases }: Upstream, model: string): string {
  const name = model.toLowerCase();
  return Object.entries(aliases).find(([alias]) => alias.toLowerCase() === name)?.[1] ?? model;
}
