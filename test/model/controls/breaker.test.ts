import fc from 'fast-check';
import { expect, test } from 'vitest';
import { noteEnded, noteServed } from '../../../src/core/parts/breaker.ts';
import { instant } from '../../../src/core/words/ids.ts';
import { runs } from '../runs.ts';
import { BreakerWorld, type BreakerAction } from './breaker-world.ts';

/** Random histories of calls through a breaker: whatever becomes of its probes, it gets out again. */

const actionArb: fc.Arbitrary<BreakerAction> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('ask' as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('served', 'failed', 'failed', 'failed', 'cancelled', 'lost' as const),
      pick: fc.nat(30),
      retryAfterMs: fc.constantFrom(null, null, 1_000, 60_000),
    }),
  },
  fc.record({
    kind: fc.constant('advance' as const),
    ms: fc.constantFrom(1, 100, 20_000, 400_000),
  }),
  fc.record({ kind: fc.constant('to_change' as const) }),
  fc.record({ kind: fc.constant('reset' as const), isLossy: fc.boolean() }),
);

test('a breaker is never stuck: when its calls end and the upstream is back, it closes', () => {
  const phases = new Set<string>();
  const historyArb = fc.array(actionArb, { minLength: 20, maxLength: 150, size: 'max' });
  fc.assert(
    fc.property(historyArb, (history) => {
      const world = new BreakerWorld();
      for (const action of history) world.run(action);
      for (const phase of world.phases) phases.add(phase);
      for (const { leaseId: id } of world.live) noteEnded(world.breaker, id, false, world.now);
      world.now = instant(world.now + 400_000);
      for (let index = 0; index < 3; index += 1) {
        const call = world.ask();
        expect(call).not.toBeNull();
        if (call !== null) noteServed(world.breaker, call, world.now);
      }
      expect(world.breaker.phase).toBe('closed');
    }),
    runs(1_000),
  );
  expect([...phases].toSorted(), 'what the histories reach').toEqual([
    'closed',
    'half_open',
    'open',
  ]);
});
