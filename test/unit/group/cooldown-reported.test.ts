// What is told of how long slots stay down.
import { expect, it } from 'vitest';
import { configSchema } from '../../../src/contract/config/config.ts';
import { groupStatus } from '../../../src/overview/group-status.ts';
import { TestGroup } from '../../support/core-builders.ts';
import { statusOf } from './pool-status.ts';

/** A group whose upstream has refused a call that followed at once on another. */
function lagging(): TestGroup {
  const group = new TestGroup({ slotsMax: 1, releaseCooldownMs: 'auto' });
  group.ask('a');
  group.release('a');
  group.ask('b');
  group.report('b', { kind: 'concurrency' });
  return group;
}

it('is what was learned, or what is configured', () => {
  expect(statusOf(new TestGroup({ releaseCooldownMs: 'auto' })).cooldown_ms).toBe(0);
  expect(statusOf(lagging()).cooldown_ms).toBe(200);
  expect(statusOf(new TestGroup({ releaseCooldownMs: 7 })).cooldown_ms).toBe(7);
});

it('is the longest of several pools', () => {
  const config = configSchema.parse({
    groups: [{ name: 'g', limits: { max_concurrency: 1 }, partition_by: ['model'] }],
  });
  const replies = [statusOf(new TestGroup()), statusOf(lagging())].map((answer, index) => {
    const partition = `model-${index}`;
    return { pool: { group: 'g', partition }, answer: { ...answer, partition } };
  });
  const reported = groupStatus('g', config, replies, []);
  expect(reported?.cooldown_ms).toBe(200);
  expect(reported?.partitions).toMatchObject([{ cooldown_ms: 0 }, { cooldown_ms: 200 }]);
});
