import {
  LEASE_TTL_MS,
  SETTLE_MS,
  type BudgetSettings,
  type RateSettings,
  type GroupSettings,
} from '../../../src/core/words/settings.ts';
import fc from 'fast-check';
import type { LeaseOutcome } from '../../../src/core/words/outcome.ts';
import type { UpstreamSignal } from '../../../src/core/words/signal.ts';
import type { Holder } from '../../../src/core/words/ticket.ts';
import { someSettings } from '../../support/core-builders.ts';

/** The expected use of a call, in tokens and dollars. */
export interface Size {
  readonly input: number;
  readonly output: number;
  readonly usd: number;
}

/** Something that happens to a group with limits. `pick` chooses among the leases that are held. */
export type LimitAction =
  | {
      readonly kind: 'ask';
      readonly size: Size;
      readonly slots: number;
      readonly wait: boolean;
      readonly isTry: boolean;
      readonly patienceMs: number | null;
      /** Names that decide which refusals hold it. Absent if there are none. */
      readonly names?: Pick<Holder, 'model' | 'tier' | 'credential'>;
    }
  | {
      readonly kind: 'end';
      readonly pick: number;
      readonly outcome: LeaseOutcome;
      /** The part of what was reserved that was used; null: nobody knows. */
      readonly used: number | null;
      /** Whether the upstream counts the request. */
      readonly counts: boolean;
    }
  /** Ends a call that has ended before. */
  | { readonly kind: 'end_again'; readonly pick: number; readonly outcome: LeaseOutcome }
  | {
      readonly kind: 'report';
      readonly pick: number;
      readonly signal: Pick<UpstreamSignal, 'kind' | 'retryAfterMs' | 'slotsMax' | 'scope'>;
      readonly isRepeat: boolean;
    }
  | { readonly kind: 'cancel_waiter' | 'cancel_lease' | 'detach'; readonly pick: number }
  | { readonly kind: 'renew_all' | 'reset' }
  | { readonly kind: 'reconfigure'; readonly changes: Partial<GroupSettings> }
  /** Time passes, and the group is woken when it wants to be. */
  | { readonly kind: 'advance'; readonly ms: number }
  /** Time passes, and nobody wakes the group before its end. */
  | { readonly kind: 'oversleep'; readonly ms: number }
  /** To the next instant at which the group wants to be woken, or a millisecond beside it. */
  | { readonly kind: 'advance_to_wake'; readonly offsetMs: number };

/** Limits per day that are never reached: their windows tell what was counted in all. */
const LEDGER = { rpd: 1e9, tpd: 1e9 };

/** Limits so small that they are felt. Some calls take most of one, and some more than there is. */
const ratesArb: fc.Arbitrary<RateSettings> = fc.record({
  rpm: fc.constantFrom(null, null, 1, 5, 20, 60, 60),
  tpm: fc.constantFrom(null, null, 1_000, 2_000),
  itpm: fc.constantFrom(null, null, null, 600, 1_500),
  otpm: fc.constantFrom(null, null, null, 400),
  startsPerS: fc.constantFrom(null, null, null, 1, 20),
  burstMs: fc.constantFrom(0, 1_000, 10_000, 60_000, 600_000),
  rpd: fc.constant(LEDGER.rpd),
  tpd: fc.constant(LEDGER.tpd),
});

const usdLimit = fc.constantFrom(null, null, null, null, 5, 20);
const budgetsArb: fc.Arbitrary<BudgetSettings> = fc.record({
  perHourUsd: usdLimit,
  perDayUsd: usdLimit,
  perMonthUsd: usdLimit,
});

export const limitSettingsArb: fc.Arbitrary<GroupSettings> = fc
  .record({
    slotsMax: fc.constantFrom(1, 2, 4, 8, Infinity),
    isHard: fc.boolean(),
    isAdaptive: fc.boolean(),
    rates: ratesArb,
    budgets: budgetsArb,
    releaseCooldownMs: fc.constantFrom(0, 0, 200, 'auto' as const),
    cancelCooldownMs: fc.constantFrom(0, 200),
    failureCooldownMs: fc.constantFrom(0, 2_000),
  })
  .map((settings) => someSettings({ ...settings, isMetered: true, timeoutMs: 14_400_000 }));

const changesArb: fc.Arbitrary<Partial<GroupSettings>> = fc.oneof(
  fc.record({ slotsMax: fc.constantFrom(0, 1, 3, 8, Infinity) }),
  fc.record({ rates: ratesArb }),
  fc.record({ budgets: budgetsArb }),
  fc.record({ paused: fc.boolean() }),
  fc.record({ isAdaptive: fc.boolean() }),
);

const pick = fc.nat(19);
const outcome = fc.constantFrom<LeaseOutcome>(
  'success',
  'cancelled',
  'failed',
  'refused',
  'unused',
);

const askArb = fc.record({
  kind: fc.constant('ask' as const),
  size: fc.record({
    input: fc.oneof(
      { weight: 5, arbitrary: fc.integer({ min: 1, max: 30 }) },
      { weight: 2, arbitrary: fc.integer({ min: 1, max: 400 }) },
      { weight: 1, arbitrary: fc.integer({ min: 400, max: 1_100 }) },
    ),
    output: fc.nat(20),
    usd: fc.constantFrom(0, 0.25, 1, 3),
  }),
  slots: fc.constantFrom(1, 1, 1, 1, 3),
  wait: fc.nat(9).map((nat) => nat > 0),
  isTry: fc.nat(9).map((nat) => nat === 0),
  patienceMs: fc.constantFrom(null, null, null, 1_000, 15_000, 60_000),
});

const endArb = fc.record({
  kind: fc.constant('end' as const),
  pick,
  outcome,
  used: fc.constantFrom(null, 0, 0.5, 1, 1.5),
  counts: fc.nat(5).map((nat) => nat > 0),
});

const msArb = fc.oneof(
  fc.constantFrom(0, 1, SETTLE_MS, 1_000, 2_000, 15_000, 59_999, 60_001, 61_500, LEASE_TTL_MS),
  fc.nat(5_000),
  fc.nat(90_000),
);

const timeArb: fc.Arbitrary<LimitAction> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: msArb }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('oversleep' as const), ms: msArb }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('advance_to_wake' as const),
      offsetMs: fc.constantFrom(-1, 0, 0, 1),
    }),
  },
);

const reportArb = fc.record({
  kind: fc.constant('report' as const),
  pick,
  signal: fc.record({
    kind: fc.constantFrom<UpstreamSignal['kind'][]>(
      ...(['served', 'served', 'served', 'error', 'error', 'overload', 'concurrency'] as const),
      ...(['requests', 'tokens', 'unknown', 'ramp', 'long_window'] as const),
      ...(['egress', 'quota', 'never_fits'] as const),
    ),
    retryAfterMs: fc.constantFrom(null, null, 0, 500, 3_000, 20_000),
    slotsMax: fc.constantFrom(null, null, 2),
  }),
  isRepeat: fc.nat(4).map((nat) => nat === 0),
});

/** The actions that every history is made of. */
const COMMON: fc.WeightedArbitrary<LimitAction>[] = [
  { weight: 10, arbitrary: askArb },
  { weight: 7, arbitrary: endArb },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('end_again' as const), pick, outcome }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('cancel_waiter' as const, 'cancel_lease' as const, 'detach' as const),
      pick,
    }),
  },
  { weight: 3, arbitrary: fc.constant({ kind: 'renew_all' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'reset' as const }) },
  { weight: 9, arbitrary: timeArb },
];

/** An upstream that never refuses, and an operator who changes nothing. */
export const calmActionArb: fc.Arbitrary<LimitAction> = fc.oneof(...COMMON);

/** An upstream that says all it can, and an operator who changes everything. */
export const anyActionArb: fc.Arbitrary<LimitAction> = fc.oneof(
  ...COMMON,
  { weight: 7, arbitrary: reportArb },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('reconfigure' as const), changes: changesArb }),
  },
);

/** An upstream that mostly fails, so that the breaker opens and is probed. */
export const failingActionArb: fc.Arbitrary<LimitAction> = fc.oneof(...COMMON, {
  weight: 10,
  arbitrary: reportArb.map((report) => {
    const kind = report.pick % 3 === 0 ? ('served' as const) : ('error' as const);
    return { ...report, signal: { ...report.signal, kind } };
  }),
});

const namesArb = fc.constantFrom<NonNullable<Extract<LimitAction, { kind: 'ask' }>['names']>[]>(
  { model: 'pro' },
  { model: 'flash' },
  { model: 'pro', tier: 'flex' },
  { model: 'pro', credential: 'one' },
  { model: 'flash', credential: 'two' },
);

/** An upstream that refuses models, tiers and keys. Such a refusal uses up no limit of the group. */
export const scopedActionArb: fc.Arbitrary<LimitAction> = fc.oneof(
  ...COMMON,
  { weight: 10, arbitrary: fc.tuple(askArb, namesArb).map(([ask, names]) => ({ ...ask, names })) },
  {
    weight: 9,
    arbitrary: fc
      .tuple(
        reportArb,
        fc.constantFrom('call' as const, 'tier' as const, 'model' as const, 'credential' as const),
      )
      .map(([report, scope]) => {
        const { kind } = report.signal;
        const uses = kind === 'requests' || kind === 'tokens';
        return {
          ...report,
          signal: { ...report.signal, scope, ...(uses && { kind: 'unknown' as const }) },
        };
      }),
  },
);
