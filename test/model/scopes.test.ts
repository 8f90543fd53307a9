import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import { crowdedSettingsArb, type Action } from './actions.ts';
import { RULES } from './naive-scopes.ts';
import { enough, isPartial, runs } from './runs.ts';
import {
  crowdedScopeHistoryArb,
  madeUpActionArb,
  renamedActionArb,
  scopeActionArb,
  scopeMemberActionArb,
  scopeMemberSettingsArb,
  scopeSettingsArb,
} from './scope-actions.ts';
import { DIRECTED } from './scope-histories.ts';
import { someSettings } from '../support/core-builders.ts';
import { World } from './world.ts';

/**
 * Random histories of groups whose upstreams refuse calls by model, tier and key, against the naive group: beside heirs,
 * calls made for others, calls that wait in several groups, members, reports of holders, lost writes and resets.
 */

const length = { minLength: 10, maxLength: 70, size: 'max' } as const;
const soleArb = [scopeSettingsArb, fc.array(scopeActionArb, length)] as const;
const memberArb = [scopeMemberSettingsArb, fc.array(scopeMemberActionArb, length)] as const;
const madeUpArb = [
  scopeSettingsArb,
  fc.array(madeUpActionArb, { minLength: 6, maxLength: 18, size: 'max' }),
] as const;
const crowdedArb = [crowdedSettingsArb, crowdedScopeHistoryArb] as const;
const renamedArb = [scopeMemberSettingsArb, fc.array(renamedActionArb, length)] as const;
const isStoredArb = fc.nat(4).map((nat) => nat > 0);

function lived(
  settings: GroupSettings,
  history: readonly Action[],
  isStored: boolean,
  rules = RULES,
): World {
  const world = new World(settings, 'after_jumps', isStored, rules);
  for (const action of history) world.run(action);
  return world;
}

test.each([
  ['a group with one key', soleArb],
  ['a group of members', memberArb],
] as const)('in %s refusals hold the calls that the naive group says', (_name, arb) => {
  const total = { granted: 0, unread: 0, limited: 0, narrower: 0 };
  fc.assert(
    fc.property(...arb, isStoredArb, (settings, history, isStored) => {
      const world = lived(settings, history, isStored);
      const count = (word: string): number =>
        world.log.filter((line) => line.includes(` ${word}`)).length;
      total.granted += count('grant ');
      total.unread += count('unread ');
      total.limited += world.log.filter((line) => line.endsWith(' upstream_limited')).length;
      const members = [...world.naive.room.scopes.members.values()];
      total.narrower += members.reduce((sum, { narrower }) => sum + narrower.length, 0);
      world.windUp();
    }),
    runs(300),
  );
  expect(total.granted, 'what the histories grant').toBeGreaterThan(enough(1_000));
  expect(total.unread, 'calls that are asked for their names').toBeGreaterThan(enough(5));
  expect(total.limited, 'calls that cannot wait as long').toBeGreaterThan(enough(8));
  expect(total.narrower, 'scopes beside those of all calls').toBeGreaterThan(enough(50));
});

test('of more scopes than are kept, those are forgotten that the naive group forgets', () => {
  let narrower = 0;
  fc.assert(
    fc.property(...madeUpArb, isStoredArb, (settings, history, isStored) => {
      const { room } = lived(settings, history, isStored).naive;
      narrower += room.scopes.member('').narrower.length;
    }),
    runs(40),
  );
  expect(narrower, 'scopes beside those of all calls').toBeGreaterThan(enough(20));
});

test('calls that scopes hold delay the calls that the naive group says', () => {
  const total = { infeasible: 0, far: 0 };
  fc.assert(
    fc.property(...crowdedArb, isStoredArb, (settings, history, isStored) => {
      const { log } = lived(settings, history, isStored);
      total.infeasible += log.filter((line) => line.endsWith(' infeasible')).length;
      total.far += log.filter((line) => line.includes(' again in ')).length;
    }),
    runs(30),
  );
  expect(total.infeasible, 'calls that would wait for too long').toBeGreaterThan(enough(0));
  expect(total.far, 'calls that are sent away').toBeGreaterThan(enough(10));
});

test('a member under another id holds the calls that the naive group says', () => {
  let narrower = 0;
  fc.assert(
    fc.property(...renamedArb, (settings, history) => {
      const { room } = lived(settings, history, false).naive;
      for (const member of room.serving()) narrower += member.narrower.length;
    }),
    runs(100),
  );
  expect(narrower, 'scopes beside those of all calls').toBeGreaterThan(enough(5));
});

test.each(Object.entries(DIRECTED))('%s', (_name, { settings, history, decides }) => {
  const { log } = lived(someSettings(settings), history, true);
  expect(log.at(-1)).toMatch(decides);
});

describe('without the rule it is noticed', () => {
  /** The rules that take more scopes than are kept to be noticed. */
  const OF_MANY: ReadonlySet<string> = new Set([
    'what stops calls now is forgotten last',
    'a caller who makes up names pushes out its own scopes',
  ]);

  /** Of the rarest rule one history in 360 tells: that none of these does has no chance. Most rules need a few. */
  const MANY_RUNS = 30_000;

  const arbOf = (rule: string) => {
    if (rule === 'a call that its scope holds delays no other call') return crowdedArb;
    return OF_MANY.has(rule) ? madeUpArb : soleArb;
  };

  const rules = Object.keys(RULES).filter((rule) => !(isPartial && OF_MANY.has(rule)));

  test.each(rules)('%s', (rule) => {
    const arb = arbOf(rule);
    const property = fc.property(...arb, isStoredArb, (settings, history, isStored) => {
      lived(settings, history, isStored, { ...RULES, [rule]: false });
    });
    const { failed } = fc.check(property, {
      ...runs(1),
      numRuns: MANY_RUNS,
      endOnFailure: true,
    });
    expect(failed, 'some history tells the groups apart').toBe(true);
  });
});
