import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { instant } from '../../../src/core/words/ids.ts';
import { SOMEBODY, someTicket, START } from '../../support/core-builders.ts';
import { enough, runs, someOf } from '../runs.ts';
import { SimulatorCaller, type Declined } from './caller.ts';
import { Clock } from './clock.ts';
import { start, type Process } from './process.ts';
import { SimulatorRandom } from './random.ts';
import { SimGroup } from './sim-group.ts';
import { play, SCENARIOS, waitOf } from './several-groups.ts';
import { rest } from './workload.ts';

/**
 * Calls that need slots of several groups, among others that need one: a wait in one group must cost the others next to nothing,
 * and none of the calls may starve.
 */

const TENANTS = [
  ['of one tenant', false],
  ['of a tenant for each class', true],
] as const;

describe.each(someOf(TENANTS))('calls of several groups, %s', (_, isShared) => {
  test('wait for a stalled group without a cost to the other calls of their key', () => {
    const [before, stalled] = [SCENARIOS.before, SCENARIOS.stalled].map((one) =>
      waitOf(play(one, isShared), 'of the key'),
    );
    expect((stalled ?? Infinity) / (before ?? 0)).toBeLessThan(1.05);
  });

  test('use two full groups to the full', () => {
    const { busy, returns } = play(SCENARIOS.full, isShared);
    expect(busy).toBeGreaterThan(0.95);
    expect(returns).toBeLessThan(0.1);
  });

  test('do not hand slots round while many of them wait', () => {
    const { busy, returns } = play(SCENARIOS.crowded, isShared);
    // Of one tenant, nearly all of them wait for the second group, and too few are left for the first.
    expect(busy).toBeGreaterThan(isShared ? 0.95 : 0.85);
    expect(returns).toBeLessThan(0.1);
  });

  test('wait at most twice as long as calls of one, where both groups have one slot', () => {
    const played = play(SCENARIOS.single, isShared);
    const single = Math.max(waitOf(played, 'of the first'), waitOf(played, 'of the second'));
    expect(waitOf(played, 'of both') / single).toBeLessThan(2);
  });

  test('wait no longer than others for a narrow group beside a wide one', () => {
    const played = play(SCENARIOS.wide, isShared);
    expect(played.busy).toBeGreaterThan(0.95);
    expect(waitOf(played, 'of both') / waitOf(played, 'of the first')).toBeLessThan(1.5);
  });
});

test('calls that wait under the cap of their tenant hold up no calls of other tenants', () => {
  const [few, many] = [SCENARIOS.uncapped, SCENARIOS.capped].map((one) =>
    waitOf(play(one, true), 'of both'),
  );
  expect((many ?? Infinity) / (few ?? 0)).toBeLessThan(1.5);
});

test('calls of one tenant that its caps hold do not swap their slots for ever', () => {
  const { returns, classes } = play(SCENARIOS.capped, false);
  // The cap lets one call of five seconds run at a time.
  const perSecond = classes.slice(1).reduce((sum, one) => sum + one.perSecond, 0);
  expect(perSecond).toBeGreaterThan(0.15);
  expect(returns).toBeLessThan(5);
});

test('calls of minutes that their caps hold do not give every slot back', () => {
  const { returns } = play(SCENARIOS.cappedForMinutes, false);
  expect(returns).toBeLessThan(5);
});

/** A history of two to four groups: calls of random groups, tenants and agents come for a minute, and all of them must end. */
class SeveralHistory {
  readonly clock = new Clock();
  readonly groups: readonly SimGroup[];
  readonly waitsMs: number[] = [];
  begun = 0;
  readonly #random: SimulatorRandom;
  readonly #declined = new Map<SimGroup, Declined>();

  constructor(seed: number) {
    const random = new SimulatorRandom(seed);
    this.#random = random;
    this.groups = Array.from({ length: 2 + random.below(3) }, (_, index) => {
      const slotsMaxEach = random.below(3) === 0 ? 2 : Infinity;
      // Without the credit of old agents, which go first for two minutes.
      const settings = { slotsMax: 1 + random.below(4), slotsMaxEach, ageCreditMs: 0 };
      const delayMs = (): number => 1 + random.below(30);
      return new SimGroup(this.clock, `group-${index}`, settings, delayMs).compare();
    });
  }

  run(): void {
    const callers = 3 + this.#random.below(10);
    for (let index = 0; index < callers; index += 1) start(this.#caller(index));
    this.clock.runTo(1_000_000);
  }

  *#caller(index: number): Process {
    const random = this.#random;
    const tenant = `tenant-${random.below(3)}`;
    const agent = random.below(2) === 0 ? null : `run-${index}`;
    const some = this.groups.filter(() => random.below(2) === 0);
    const groups = some.length === 0 ? this.groups : some;
    while (this.clock.now < 60_000) {
      yield* rest(this.clock, random.exponential(500));
      const begunAt = this.clock.now;
      this.begun += 1;
      const ticket = someTicket(`t${this.begun}`, instant(START + begunAt), {
        holder: { ...SOMEBODY, tenant, agent },
      });
      const caller = new SimulatorCaller(this.clock, ticket, groups, this.#declined);
      assert.ok(yield* caller.admit(), `${ticket.id} was refused`);
      this.waitsMs.push(this.clock.now - begunAt);
      yield* caller.run(random.exponential(1_000));
    }
  }
}

test('every group decides as the naive group does, no call waits for ever, and none starves', () => {
  let calls = 0;
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const history = new SeveralHistory(seed);
      history.run();
      assert.equal(history.waitsMs.length, history.begun, 'calls that never came through');
      // A dozen callers with calls of a second, on one slot at the worst.
      assert.ok(
        Math.max(0, ...history.waitsMs) < 60_000,
        `a call waited ${Math.max(...history.waitsMs)} ms`,
      );
      for (const group of history.groups) {
        assert.ok(group.peak <= group.state.settings.slotsMax, `${group.name} ran ${group.peak}`);
        group.assertAtRest();
      }
      calls += history.begun;
    }),
    // In these histories two calls hold the slots that the other one waits for: before anything is known of the groups, and after.
    { ...runs<[number]>(150), examples: [[1_494_413_625], [947_426_290]] },
  );
  expect(calls, 'calls of the histories').toBeGreaterThan(enough(10_000));
});
