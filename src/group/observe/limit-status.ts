import type { PoolStatus, SpendStatus } from '../../contract/status.ts';
import { blockOf, slotsLearned } from '../../core/capacity.ts';
import { isSplit } from '../../core/members.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import { spentIn, type Spender } from '../../core/parts/spend.ts';
import { NEVER, type GroupState } from '../../core/state.ts';
import { configuredSlots, rateStatuses } from '../../routing/group-limits.ts';
import { limitOf, type Definition } from '../definition.ts';
import { amountsSpent } from './amounts-spent.ts';
import { pauseOfMembers, pauseStatus } from './pause-status.ts';

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
