import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import { someSettings } from '../../support/core-builders.ts';
import { enough, runs } from '../runs.ts';
import {
  anyActionArb,
  calmActionArb,
  failingActionArb,
  limitSettingsArb,
  scopedActionArb,
  type LimitAction,
} from './limit-actions.ts';
import { LimitWorld } from './limit-world.ts';

/**
 * Random histories of a group with requests, tokens and budgets, of its upstream's answers, and of resets,
 * against a ledger that adds up every call. `LimitWorld` checks after every step that a grant took all it
 * needs or nothing, that no limit of any minute and no budget was exceeded, that nothing was granted in a
 * pause or beside the breaker, that what was settled counts once, and that nobody waits beside room.
 */

function historyOf(action: fc.Arbitrary<LimitAction>): fc.Arbitrary<LimitAction[]> {
  return fc.array(action, { minLength: 20, maxLength: 80, size: 'max' });
}

const anyHistoryArb = historyOf(anyActionArb);

/** A world that has lived through the history. */
function lived(settings: GroupSettings, history: readonly LimitAction[]): LimitWorld {
  const world = new LimitWorld(settings);
  for (const action of history) world.run(action);
  return world;
}

/** Lets every history happen and end, and tells how often what happened in all of them. */
function totalOf(
  histories: fc.Arbitrary<LimitAction[]>,
  count: number,
  settingsArb = limitSettingsArb,
): LimitWorld['seen'] {
  const total = { ...new LimitWorld(someSettings()).seen };
  fc.assert(
    fc.property(settingsArb, histories, (settings, history) => {
      const world = lived(settings, history);
      for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += world.seen[key];
      world.drain();
    }),
    runs(count),
  );
  return total;
}

test('with an upstream that refuses nothing, limits are kept, used, and at rest', () => {
  const total = totalOf(historyOf(calmActionArb), 800);
  expect(total.granted, 'what the histories grant').toBeGreaterThan(enough(2_000));
  expect(total.waitedForTime, 'who waits for time alone').toBeGreaterThan(enough(1_000));
  expect(total.refused, 'what is beyond a budget').toBeGreaterThan(enough(200));
  expect(total.overtook, 'who goes before a larger one').toBeGreaterThan(enough(3));
  expect(total.tooLarge, 'what never fits').toBeGreaterThan(enough(100));
  expect(total.resumed, 'who holds a lease across a reset').toBeGreaterThan(enough(300));
  expect(total.left, 'resets after which slots are unclaimed').toBeGreaterThan(enough(100));
});

test('whatever the upstream says, and whatever is changed, limits are kept and come to rest', () => {
  const total = totalOf(anyHistoryArb, 500);
  expect(total.granted, 'what the histories grant').toBeGreaterThan(enough(1_500));
  expect(total.stopped, 'who is let go by a pause').toBeGreaterThan(enough(100));
});

test('whichever models, tiers and keys the upstream refuses, limits are kept and come to rest', () => {
  const total = totalOf(historyOf(scopedActionArb), 250);
  expect(total.granted, 'what the histories grant').toBeGreaterThan(enough(700));
  expect(total.scoped, 'what is granted beside narrower scopes').toBeGreaterThan(enough(50));
});

test('with an upstream that fails, only probes pass until it is back', () => {
  // Room enough for ten results to come in before the first call must wait.
  const wide = { slotsMax: Infinity, isAdaptive: false };
  const wideArb = limitSettingsArb.map((settings) => ({ ...settings, ...wide }));
  const total = totalOf(historyOf(failingActionArb), 800, wideArb);
  expect(total.opened, 'what happens while it is open').toBeGreaterThan(enough(100));
  expect(total.probed, 'how many probes there are').toBeGreaterThan(enough(10));
});

test('the same history brings the same answers', () => {
  fc.assert(
    fc.property(limitSettingsArb, anyHistoryArb, (settings, history) => {
      const [first, second] = [1, 2].map(() => lived(settings, history));
      expect(first?.history).toEqual(second?.history);
    }),
    runs(100),
  );
});
