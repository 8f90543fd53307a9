import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { GroupState } from '../../../src/core/state.ts';
import { runs } from '../runs.ts';
import { RULES, type ScopeRules } from './naive-scopes.ts';
import {
  crowdedHistoryArb,
  scopeHistoryArb,
  scopeSettingsArb,
  ScopesWorld,
} from './scopes-world.ts';

/** Random histories of a group whose upstreams refuse calls by model, tier and key, against a naive one. */

const NOTHING = { granted: 0, unread: 0, overtook: 0, rejected: 0, narrower: 0, resumed: 0 };

/** Lets histories happen, and adds up what happened in them. */
function propertyOf(
  total: typeof NOTHING,
  rules: ScopeRules = RULES,
  spoil: (state: GroupState) => void = () => {},
  historyArb = scopeHistoryArb,
) {
  return fc.property(scopeSettingsArb, historyArb, (settings, history) => {
    const world = new ScopesWorld(settings, rules, spoil);
    for (const action of history) world.run(action);
    for (const name of Object.keys(total) as (keyof typeof total)[]) {
      total[name] += world.seen[name];
    }
  });
}

test('refusals hold the calls that the naive group says, and no others', () => {
  const total = { ...NOTHING };
  fc.assert(propertyOf(total), runs(400));
  expect(total.granted, 'what the histories grant').toBeGreaterThan(2_500);
  expect(total.unread, 'calls that are asked for their names').toBeGreaterThan(100);
  expect(total.overtook, 'grants beside calls that wait').toBeGreaterThan(150);
  expect(total.rejected, 'calls that cannot wait as long').toBeGreaterThan(150);
  expect(total.narrower, 'scopes beside those of all calls').toBeGreaterThan(200);
  expect(total.resumed, 'leases that outlive a reset').toBeGreaterThan(300);
});

test('of more scopes than are remembered, those are forgotten that the naive group forgets', () => {
  const total = { ...NOTHING };
  fc.assert(
    propertyOf(total, RULES, () => {}, crowdedHistoryArb),
    runs(40),
  );
  expect(total.narrower, 'scopes beside those of all calls').toBeGreaterThan(300);
});

describe('without the rule it is noticed', () => {
  /** Whether some history tells the groups apart. */
  function isNoticed(rules: ScopeRules, spoil?: (state: GroupState) => void): boolean {
    const found = [scopeHistoryArb, crowdedHistoryArb].some((arb) => {
      const property = propertyOf({ ...NOTHING }, rules, spoil, arb);
      return fc.check(property, { ...runs(1_000), endOnFailure: true }).failed;
    });
    return found;
  }

  test.each(Object.keys(RULES))('%s', (rule) => {
    expect(isNoticed({ ...RULES, [rule]: false })).toBe(true);
  });

  const SUMS = ['slotsInUse', 'slotsRefused', 'slotsCooling', 'slotsWaitingElsewhere'] as const;

  test.each(SUMS)('the sum %s of a scope is that of its leases', (name) => {
    const spoil = ({ members }: GroupState): void => {
      for (const { scopes } of members.values()) {
        for (const limiter of scopes.values()) limiter[name] += 1;
      }
    };
    expect(isNoticed(RULES, spoil)).toBe(true);
  });
});
