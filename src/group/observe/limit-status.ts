import { MEMBER_GAUGES, type Figure, type GaugeRow } from '../../contract/gauges.ts';
import type {
  PoolStatus,
  SpendStatus,
  MemberStatus,
  LimitsSeenStatus,
} from '../../contract/status.ts';
import { blockOf, slotsLearned, heldAtMember, memberSlotsLearned } from '../../core/capacity.ts';
import { isSplit, NEVER, type GroupState } from '../../core/state.ts';
import { IMPLICIT, type InstantMs } from '../../core/words/ids.ts';
import { spentIn, type Spender } from '../../core/parts/spend.ts';
import { configuredSlots, rateStatuses } from '../../routing/group-limits.ts';
import { memberIdOf } from '../../contract/config/members.ts';
import type { Member, Ledger } from '../../core/member.ts';
import type { Outage } from '../../core/parts/pause.ts';
import {
  areSameLimits,
  limitsReported,
  type ReportedLimits,
} from '../../core/parts/rate-limits.ts';
import type { LimitHint } from '../../core/words/signal.ts';
import { limitOf, type Definition } from '../definition.ts';
import { pauseOfMembers, pauseStatus, aboutOf } from './scope-status.ts';

/**
 * The limits of a pool in its status: configured, learned, spent, and reported by the upstream. The counters that its
 * status reads from the totals.
 */

type CounterRows = Readonly<Record<string, Pick<GaugeRow<string, string>, 'shape' | 'total'>>>;

type Counters<Rows> = {
  readonly [
    Name in keyof Rows as Rows[Name] extends { readonly total: string } ? Name : never
  ]: Figure<Rows[Name]>;
};

type TotalOf<Rows> = {
  [Name in keyof Rows]: Rows[Name] extends { readonly total: infer Total extends string }
    ? Total
    : never;
}[keyof Rows];

type Tally = Readonly<Partial<Record<string, number>>>;

/** Returns a function that reads the counters of a table of gauges from the totals of a pool or member. */
export function counterReader<Rows extends CounterRows>(
  rows: Rows,
): (totals: Readonly<Record<TotalOf<Rows>, number | Tally>>) => Counters<Rows> {
  const counted = Object.entries(rows).flatMap(([name, { total }]) =>
    total === undefined ? [] : [[name, total as TotalOf<Rows>] as const],
  );
  return (totals) => {
    const counters: Record<string, number | Tally> = {};
    for (const [name, total] of counted) {
      const value = totals[total];
      counters[name] = typeof value === 'object' ? { ...value } : value;
    }
    return counters as Counters<Rows>;
  };
}

/** Maximum keys and agents that are shown, those with the highest spend first. */
const SPENDERS_SHOWN = 20;

type LimitStatus = Pick<
  PoolStatus,
  'limit' | 'paused_until' | 'pause' | 'breaker' | 'breaker_until' | 'rates' | 'spend'
>;

/** Returns a pool's limits, what is left of them, and what its upstream reported. */
export function limitStatus(
  definition: Definition,
  state: GroupState,
  now: InstantMs,
): LimitStatus {
  const { controls } = state;
  return {
    ...(isSplit(state)
      ? limitOfMembers(definition, state, now)
      : limitOfSole(definition, state, now)),
    rates: rateStatuses(controls.rates, state.settings.rates, now),
    spend: spendOf(state, now),
  };
}

type Learned = Pick<LimitStatus, 'limit' | 'paused_until' | 'pause' | 'breaker' | 'breaker_until'>;

function limitOfSole(definition: Definition, state: GroupState, now: InstantMs): Learned {
  const { pause, breaker, ceiling } = state.controls;
  const limit = limitOf(definition);
  const isOpen = breaker.phase === 'open';
  return {
    limit:
      ceiling.slots === null
        ? limit
        : { ...limit, effective: slotsLearned(state), source: 'learned' },
    ...pauseStatus(pause, now),
    breaker: breaker.phase,
    breaker_until: isOpen ? isoOf(breaker.openUntil) : null,
  };
}

/**
 * Returns the members' limits combined. The pool counts as paused, or its breaker as open, if all members are stopped.
 */
function limitOfMembers({ config }: Definition, state: GroupState, now: InstantMs): Learned {
  const { serving } = state;
  const hasLearned = serving.some(({ controls }) => controls.ceiling.slots !== null);
  const slots = slotsLearned(state);
  const block = blockOf(serving, now);
  const until = block === null || block.until === NEVER ? null : isoOf(block.until);
  const isOpen = block?.reason === 'breaker_open';
  return {
    limit: {
      configured: config === null ? null : configuredSlots(config),
      effective: Number.isFinite(slots) ? slots : null,
      source: hasLearned ? 'learned' : 'configured',
    },
    ...pauseOfMembers(
      serving.map(({ controls }) => controls.pause),
      block?.reason === 'paused',
      now,
    ),
    breaker: isOpen ? 'open' : 'closed',
    breaker_until: isOpen ? until : null,
  };
}

function spendOf(state: GroupState, now: InstantMs): SpendStatus | null {
  const amounts = amountsSpent(state, now);
  if (amounts === null) return null;
  const { keys, agents } = state.controls.spend;
  return {
    ...amounts,
    day_usd_by_key: topOf(keys, now),
    day_usd_by_agent: topOf(agents, now),
  };
}

function topOf(spenders: readonly Spender[], now: InstantMs): Record<string, number> {
  const today = spenders.map((spender) => [spender.id, spentIn(spender, 'day', now)] as const);
  const spent = today.filter(([, usd]) => usd > 0).toSorted(([, a], [, b]) => b - a);
  return Object.fromEntries(spent.slice(0, SPENDERS_SHOWN));
}

function isoOf(at: InstantMs): string {
  return new Date(at).toISOString();
}

const readCounters = counterReader(MEMBER_GAUGES);

/** Returns the members of a pool: the configured ones, and removed ones with running calls. */
export function membersStatus(
  definition: Definition,
  state: GroupState,
  now: InstantMs,
): Pick<PoolStatus, 'members' | 'affinity'> {
  if (!isSplit(state)) return {};
  const { serving, members, totals } = state;
  const upstreams = upstreamsOf(definition);
  const retired = [...members.values()].filter(
    (each) => !serving.includes(each) && each.id !== IMPLICIT && each.slotsInUse > 0,
  );
  return {
    members: [...serving, ...retired].map((member) => ({
      ...statusOf(member, now),
      upstream: upstreams.get(member.id) ?? null,
      ...(serving.includes(member) ? {} : { retired: true as const }),
    })),
    affinity: {
      kept_total: totals.affinityKept,
      left_total: totals.affinityLeft,
      waited_total: totals.affinityWaited,
    },
  };
}

function upstreamsOf({ config }: Definition): ReadonlyMap<string, string> {
  return new Map((config?.members ?? []).map((each) => [memberIdOf(each), each.upstream]));
}

function statusOf(member: Member, now: InstantMs): Omit<MemberStatus, 'upstream'> {
  const { id, settings, controls, totals } = member;
  const { pause, breaker, outage } = controls;
  return {
    id,
    tier: settings.tier,
    weight: settings.weight,
    enabled: settings.isEnabled,
    limit: limitOfMember(member),
    in_use: heldAtMember(member),
    cooling: member.slotsCooling,
    unclaimed: member.unclaimed,
    ...pauseStatus(pause, now),
    breaker: breaker.phase,
    breaker_until: breaker.phase === 'open' ? isoOf(breaker.openUntil) : null,
    ...aboutOf(member),
    out: outOf(outage),
    rates: rateStatuses(controls.rates, settings.rates, now),
    spend: amountsSpent(member, now),
    ...readCounters(totals),
  };
}

function limitOfMember(member: Member): MemberStatus['limit'] {
  const { slotsMax } = member.settings;
  const isLearned = member.controls.ceiling.slots !== null;
  return {
    configured: finite(slotsMax),
    effective: finite(memberSlotsLearned(member)),
    source: isLearned ? 'learned' : 'configured',
  };
}

function outOf({ reason, since, probeAt }: Outage): MemberStatus['out'] {
  if (reason === null) return null;
  return { reason, since: isoOf(since), probe_at: isoOf(probeAt) };
}

function finite(slots: number): number | null {
  return Number.isFinite(slots) ? slots : null;
}

/** Returns what a group or a member has spent. Returns null without a budget if nothing was ever counted. */
function amountsSpent(
  { controls: { spend }, settings: { budgets } }: Pick<Ledger, 'controls' | 'settings'>,
  now: InstantMs,
): MemberStatus['spend'] {
  const hasBudget = Object.values(budgets).some((budget) => budget !== null);
  if (!hasBudget && spend.total.beganAt.month === 0) return null;
  return {
    hour_usd: spentIn(spend.total, 'hour', now),
    day_usd: spentIn(spend.total, 'day', now),
    month_usd: spentIn(spend.total, 'month', now),
    reserved_usd: spend.reservedUsd,
  };
}

/** Maximum models whose limits a pool stores. The one reported longest ago is dropped first. */
const KEPT_MAX = 16;

/** Minimum interval between writes. Callers of two accounts would otherwise cause a write per call. */
const WRITTEN_EVERY_MS = 600_000;

/** Maximum length of a stored model name. */
const MODEL_MAX = 200;

interface LimitsMemory {
  recall(key: 'limits_seen'): string | null;
  remember(key: 'limits_seen', value: string): void;
}

interface SeenLimit {
  readonly upstream: string;
  readonly model: string | null;
  readonly limits: ReportedLimits;
  /** When these values were first reported. */
  readonly at: number;
}

/** The limits that upstreams reported in headers, by upstream and model. They survive a reset. */
export class LimitsSeen {
  readonly #store: LimitsMemory;
  #seen: readonly SeenLimit[];
  #writtenAt = -Infinity;
  #isWritten = true;

  constructor(store: LimitsMemory) {
    this.#store = store;
    const row = store.recall('limits_seen');
    this.#seen = row === null ? [] : (JSON.parse(row) as SeenLimit[]);
  }

  /** Records the limits in the headers of an answer. They are written only if they changed, and at a limited rate. */
  note(
    { upstream, model: name }: { readonly upstream: string; readonly model: string | null },
    hints: readonly LimitHint[],
    now: InstantMs,
  ): void {
    if (hints.length === 0) return;
    const limits = limitsReported(hints);
    if (Object.keys(limits).length === 0) return;
    const model = name?.slice(0, MODEL_MAX) ?? null;
    const isOf = (one: SeenLimit): boolean => one.upstream === upstream && one.model === model;
    const known = this.#seen.find(isOf);
    if (known === undefined || !areSameLimits(known.limits, limits)) {
      const rest = this.#seen.filter((one) => !isOf(one));
      this.#seen = [...rest, { upstream, model, limits, at: now }].slice(-KEPT_MAX);
      this.#isWritten = false;
    }
    if (this.#isWritten || now < this.#writtenAt + WRITTEN_EVERY_MS) return;
    this.#store.remember('limits_seen', JSON.stringify(this.#seen));
    this.#writtenAt = now;
    this.#isWritten = true;
  }

  /** Returns the limits for the status, or nothing if none were reported. */
  status(): { readonly limits_seen?: readonly LimitsSeenStatus[] } {
    if (this.#seen.length === 0) return {};
    const limits_seen = this.#seen.map(({ at, ...one }) => ({
      ...one,
      at: new Date(at).toISOString(),
    }));
    return { limits_seen };
  }
}
