import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { instant } from '../../../src/core/words/ids.ts';
import { LANES } from '../../../src/core/words/ticket.ts';
import { SOMEBODY, someTicket, START } from '../../support/core-builders.ts';
import { enough, runs } from '../runs.ts';
import { SimulatorCaller, type Declined } from './caller.ts';
import { Clock } from './clock.ts';
import { start, type Process } from './process.ts';
import { SimulatorRandom } from './random.ts';
import { SimGroup } from './sim-group.ts';
import { rest } from './workload.ts';

/**
 * Calls of one to four groups out of six, over a network that delays every message by another time, while
 * writes arrive late or never, instances are replaced, groups are paused and callers die. Nobody may wait in a circle, nothing may
 * stay behind, and no group may ever run more than its slots.
 */

const BUSY_MS = 240_000;
/** Long after the last call came: a circle would still be there. */
const END_MS = 3_000_000;

class MishapsNetwork {
  readonly clock = new Clock();
  readonly groups: readonly SimGroup[];
  begun = 0;
  over = 0;
  readonly #random: SimulatorRandom;
  readonly #declined = new Map<SimGroup, Declined>();

  constructor(seed: number) {
    this.#random = new SimulatorRandom(seed);
    const random = this.#random;
    this.groups = Array.from({ length: 6 }, (_, rank) => {
      const slotsMax = 2 + random.below(5);
      const slotsMaxEach = random.below(3) === 0 ? 2 : Infinity;
      const settings = { slotsMax, slotsMaxEach, byAgent: random.below(2) === 0 };
      const delayMs = (): number => 1 + random.below(150);
      // Some disks are quick, and some are not.
      const lagMs = [0, 20, 1_000][random.below(3)] ?? 0;
      const writeMs = (): number => random.below(lagMs + 1);
      return new SimGroup(this.clock, `rank-${rank}`, settings, delayMs, writeMs);
    });
  }

  run(): void {
    start(this.#callers());
    start(this.#resets());
    start(this.#pauses());
    this.clock.runTo(END_MS);
  }

  *#callers(): Process {
    const random = this.#random;
    while (this.clock.now < BUSY_MS) {
      yield* rest(this.clock, random.exponential(1_000));
      start(this.#call(`t${this.begun++}`));
    }
  }

  *#call(name: string): Process {
    const random = this.#random;
    const wanted = 1 + random.below(4);
    // Narrow first: the same order for everybody.
    const groups = this.groups.filter(() => random.below(6) < wanted).slice(0, 4);
    const ticket = someTicket(name, instant(START + this.clock.now), {
      holder: { ...SOMEBODY, tenant: `tenant-${random.below(3)}`, agent: `run-${random.below(2)}` },
      lane: LANES[random.below(3)] ?? 'normal',
      slots: 1 + random.below(2),
    });
    const caller = new SimulatorCaller(this.clock, ticket, groups, this.#declined);
    const isAdmitted = groups.length === 0 || (yield* caller.admit());
    assert.ok(isAdmitted, `${name} was refused`);
    // With the process the call ends at the upstream, and the group hears nothing of either.
    const dies = random.below(30) === 0;
    if (dies) caller.die();
    yield* caller.run(dies ? random.below(5_000) : random.exponential(6_000));
    this.over += 1;
  }

  *#resets(): Process {
    while (this.clock.now < BUSY_MS) {
      yield* rest(this.clock, this.#random.exponential(20_000));
      this.groups[this.#random.below(6)]?.reset();
    }
  }

  *#pauses(): Process {
    while (this.clock.now < BUSY_MS) {
      yield* rest(this.clock, this.#random.exponential(30_000));
      const group = this.groups[this.#random.below(6)];
      group?.reconfigure({ paused: true });
      yield* rest(this.clock, this.#random.exponential(8_000));
      group?.reconfigure({ paused: false });
    }
  }
}

test('calls of several groups come through, whatever happens to them', () => {
  let calls = 0;
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const network = new MishapsNetwork(seed);
      network.run();
      assert.equal(network.over, network.begun, 'calls that never came through');
      for (const group of network.groups) {
        const { slotsMax } = group.state.settings;
        assert.ok(group.peak <= slotsMax, `${group.name} ran ${group.peak} of ${slotsMax}`);
        group.assertAtRest();
      }
      calls += network.begun;
    }),
    runs(25),
  );
  assert.ok(calls > enough(3_000), 'hardly any calls');
});
