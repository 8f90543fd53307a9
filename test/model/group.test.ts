import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import {
  actionArb,
  busyActionArb,
  busySettingsArb,
  crowdedActionArb,
  crowdedSettingsArb,
  memberActionArb,
  memberSettingsArb,
  settingsArb,
  SLOW_CALLS,
  type Action,
} from './actions.ts';
import type { NaiveGroup } from './naive-group.ts';
import { enough, runs } from './runs.ts';
import {
  scopeActionArb,
  scopeMemberActionArb,
  scopeMemberSettingsArb,
  scopeSettingsArb,
} from './scope-actions.ts';
import { World, type Ticking } from './world.ts';

/**
 * Random histories of the core against the naive group. After every step both must have given the same
 * answers in the same order and be in the same state, and what `World` checks must hold.
 */

class ActionCommand implements fc.Command<NaiveGroup, World> {
  readonly #action: Action;

  constructor(action: Action) {
    this.#action = action;
  }

  check(): boolean {
    return true;
  }

  run(_naive: NaiveGroup, world: World): void {
    world.run(this.#action);
  }

  toString(): string {
    return JSON.stringify(this.#action);
  }
}

const commandArb = actionArb.map((action) => new ActionCommand(action));
const historyArb = fc.array(actionArb, { maxLength: 60, size: 'max' });

const busyHistoryArb = fc.array(busyActionArb, { minLength: 30, maxLength: 100, size: 'max' });

/** Everything that an answer can begin with. */
const ANSWERS = ['declined', 'ended', 'gone', 'grant', 'moved', 'pending', 'reject', 'revoked'];

/** Most pools are stored; those on trial are not. */
const isStoredArb = fc.nat(4).map((nat) => nat > 0);

/** A world that has lived through the history. */
function lived(
  settings: GroupSettings,
  history: readonly Action[],
  ticking: Ticking,
  isStored = true,
): World {
  const world = new World(settings, ticking, isStored);
  for (const action of history) world.run(action);
  return world;
}

test('the core decides as the naive group does, and comes to rest', () => {
  const seen = new Set<string>();
  const commandsArb = fc.commands([commandArb], { maxCommands: 60, size: 'max' });
  fc.assert(
    fc.property(settingsArb, commandsArb, isStoredArb, (settings, commands, isStored) => {
      const world = new World(settings, 'after_jumps', isStored);
      fc.modelRun(() => ({ model: world.naive, real: world }), commands);
      for (const line of world.log) seen.add(line.split(' ')[1] ?? '');
      world.windUp();
    }),
    runs(4_000),
  );
  expect([...seen].toSorted(), 'what the histories reach').toEqual(ANSWERS);
});

test('in a busy group every turn is as the naive group says', () => {
  let granted = 0;
  fc.assert(
    fc.property(busySettingsArb, busyHistoryArb, (settings, history) => {
      const world = lived(settings, history, 'after_jumps');
      granted += world.log.filter((line) => line.includes(' grant ')).length;
    }),
    runs(1_500),
  );
  expect(granted, 'what the histories grant').toBeGreaterThan(enough(15_000));
});

const memberHistoryArb = fc.array(memberActionArb, { maxLength: 80, size: 'max' });

test('a group of members decides as the naive group does, before resets and after', () => {
  let granted = 0;
  fc.assert(
    fc.property(memberSettingsArb, memberHistoryArb, isStoredArb, (settings, history, isStored) => {
      const world = lived(settings, history, 'after_jumps', isStored);
      granted += world.log.filter((line) => line.includes(' grant ')).length;
      world.windUp();
    }),
    runs(1_000),
  );
  expect(granted, 'what the histories grant').toBeGreaterThan(enough(4_000));
});

const crowdedHistoryArb = fc.array(crowdedActionArb, {
  minLength: 20,
  maxLength: 60,
  size: 'max',
});

test('in a crowd callers are sent away to ask again later as the naive group says', () => {
  const seen = { far: 0, told: 0 };
  fc.assert(
    fc.property(crowdedSettingsArb, crowdedHistoryArb, (settings, history) => {
      const world = lived(settings, [...SLOW_CALLS, ...history], 'after_jumps');
      const pending = world.log.filter((line) => line.includes(' pending '));
      seen.far += pending.filter((line) => line.includes(' again in ')).length;
      seen.told += pending.filter((line) => / at \d{3}$/.test(line)).length;
    }),
    runs(150),
  );
  expect(seen.far, 'who is sent away').toBeGreaterThan(enough(100));
  expect(
    seen.told,
    'callers with a distant place in the queue are told it at once',
  ).toBeGreaterThan(enough(100));
});

test('when nobody comes any more and holders let go, everybody has an answer', () => {
  fc.assert(
    fc.property(settingsArb, historyArb, isStoredArb, (settings, history, isStored) => {
      lived(settings, history, 'after_jumps', isStored).drain();
    }),
    runs(1_000),
  );
});

test('the same history brings the same effects', () => {
  fc.assert(
    fc.property(settingsArb, historyArb, (settings, history) => {
      const [first, second] = [1, 2].map(() => lived(settings, history, 'after_jumps'));
      expect(first?.history).toEqual(second?.history);
    }),
    runs(200),
  );
});

/**
 * A tick that is not needed may issue a write earlier than the next needed one. Histories do not compare where that
 * shows: where many are granted, or a new instance found something else on disk.
 */
function dependsOnTicks(rare: World, frequent: World): boolean {
  const grants = frequent.log.filter((line) => line.includes(' grant '));
  return grants.length >= 16 || rare.found.join() !== frequent.found.join();
}

function promptHistoryOf(arb: fc.Arbitrary<Action>): fc.Arbitrary<Action[]> {
  return fc.array(
    arb.filter(({ kind }) => kind !== 'lag'),
    { maxLength: 60, size: 'max' },
  );
}

test.each([
  ['a group', settingsArb, promptHistoryOf(actionArb), 1_000],
  ['a group whose upstream refuses calls', scopeSettingsArb, promptHistoryOf(scopeActionArb), 300],
  [
    'a group of members whose upstreams refuse calls',
    scopeMemberSettingsArb,
    promptHistoryOf(scopeMemberActionArb),
    200,
  ],
] as const)('%s: waking only when it asks for it misses nothing', (_, settingsOf, of, count) => {
  fc.assert(
    fc.property(settingsOf, of, isStoredArb, (settings, history, isStored) => {
      const rare = lived(settings, history, 'at_wakes', isStored);
      const frequent = lived(settings, history, 'around_dues', isStored);
      fc.pre(!dependsOnTicks(rare, frequent));
      expect(rare.log).toEqual(frequent.log);
    }),
    runs(count),
  );
});
