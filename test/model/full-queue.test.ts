// A full queue of 2 to 50 tenants never refuses a call of a tenant that has less than its share.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TestGroup } from '../support/core-builders.ts';

const WEIGHTS = [1, 1, 3, 0.5];

interface FullQueueStep {
  /** The tenant that calls. */
  readonly by: number;
  /** Number of calls at once. */
  readonly calls: number;
  /** They came before all waiters were sent back. */
  readonly areOld: boolean;
  /** Slots that become free afterwards. */
  readonly ends: number;
}

const scenes = fc.integer({ min: 2, max: 50 }).chain((tenants) =>
  fc.record({
    tenants: fc.constant(tenants),
    queueLengthMax: fc.integer({ min: tenants, max: 4 * tenants }),
    weights: fc.array(fc.constantFrom(...WEIGHTS), { minLength: tenants, maxLength: tenants }),
    steps: fc.array(
      fc.record<FullQueueStep>({
        by: fc.oneof(fc.constant(0), fc.nat(tenants - 1)),
        calls: fc.integer({ min: 1, max: 12 }),
        areOld: fc.boolean(),
        ends: fc.integer({ min: 0, max: 3 }),
      }),
      { minLength: 1, maxLength: 60 },
    ),
  }),
);

type FullQueueScene = typeof scenes extends fc.Arbitrary<infer T> ? T : never;

/** A group of four slots, all in use, with the queued calls of its tenants. */
class FullQueueCrowd {
  readonly group: TestGroup;
  readonly #weights: ReadonlyMap<string, number>;
  readonly #tenantOf = new Map<string, string>();
  readonly #held: string[] = [];
  readonly #waiting = new Map<string, number>();
  refused = 0;
  /** Refusals of tenants that had no more than their share. */
  readonly wronged: string[] = [];

  constructor({ queueLengthMax, weights }: FullQueueScene) {
    this.#weights = new Map(weights.map((weight, index) => [`t${index}`, weight]));
    this.group = new TestGroup({
      slotsMax: 4,
      queueLengthMax,
      weights: Object.fromEntries(this.#weights),
    });
  }

  /** Sends all waiters back, after which those that came before have their places again. */
  move(): void {
    for (let call = 0; call < 5; call += 1) this.call('t0', false);
    this.group.advance(1_000);
    this.#note(this.group.move());
  }

  call(tenant: string, isOld: boolean): void {
    const name = `c${this.#tenantOf.size}`;
    this.#tenantOf.set(name, tenant);
    this.#add(tenant, 1);
    this.#note(this.group.ask(name, { tenant, ...(isOld && { enqueuedMs: 0 }) }));
  }

  end(): void {
    const name = this.#held.shift();
    if (name !== undefined) this.#note(this.group.release(name));
  }

  /** Records refusals of tenants that wait with at most their share, including the refused call. */
  #note(effects: readonly string[]): void {
    for (const effect of effects) {
      const [kind, name = '', reason] = effect.split(' ');
      const tenant = this.#tenantOf.get(name);
      if (tenant === undefined) continue;
      if (kind === 'reject') {
        const isAbove = (this.#waiting.get(tenant) ?? 0) > this.#shareOf(tenant);
        if (reason !== 'queue_full' || !isAbove) this.wronged.push(effect);
        this.refused += 1;
      } else if (kind === 'grant') {
        this.#held.push(name);
      }
      this.#add(tenant, -1);
    }
  }

  #shareOf(tenant: string): number {
    const others = [...this.#waiting].filter(([, waiting]) => waiting > 0);
    const sum = others.reduce((total, [each]) => total + this.#weightOf(each), 0);
    return (this.group.state.settings.queueLengthMax * this.#weightOf(tenant)) / sum;
  }

  #weightOf(tenant: string): number {
    return this.#weights.get(tenant) ?? 1;
  }

  #add(tenant: string, calls: number): void {
    this.#waiting.set(tenant, (this.#waiting.get(tenant) ?? 0) + calls);
  }
}

it('refuses no call of a tenant that has less than its share of the queue', () => {
  let refused = 0;
  fc.assert(
    fc.property(scenes, (scene) => {
      const callersAtOnce = new FullQueueCrowd(scene);
      callersAtOnce.move();
      for (const { by, calls, areOld, ends } of scene.steps) {
        for (let call = 0; call < calls; call += 1) callersAtOnce.call(`t${by}`, areOld);
        for (let end = 0; end < ends; end += 1) callersAtOnce.end();
      }
      refused += callersAtOnce.refused;
      expect(callersAtOnce.wronged).toEqual([]);
    }),
  );
  expect(refused).toBeGreaterThan(0);
});

it.each([2, 10, 50])(
  'one of %i tenants that calls without a pause does not lock out the others',
  (tenants) => {
    const group = new TestGroup({ slotsMax: 0, queueLengthMax: 2 * tenants });
    for (let call = 0; call < 10 * tenants; call += 1) {
      group.ask(`greedy-${call}`, { tenant: 'greedy' });
    }
    for (let other = 1; other < tenants; other += 1) {
      for (const call of [1, 2]) {
        const [effect] = group.ask(`t${other}-${call}`, { tenant: `t${other}` });
        expect(effect).toMatch(/^reject greedy-\d+ queue_full$/);
      }
    }
    expect(group.waiting().filter((name) => name.startsWith('greedy'))).toHaveLength(2);
  },
);
