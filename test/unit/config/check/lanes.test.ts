import { expect, it } from 'vitest';
import { laneWarnings } from '../../../../src/config/check/groups.ts';
import { configSchema } from '../../../../src/contract/config/config.ts';

const HASH = `sha256:${'a'.repeat(64)}`;
const key = (id: string, fields: object = {}): object => ({ id, hash: HASH, ...fields });

it('a group that puts calls into a lane that no key allows gets a warning', () => {
  const groups = [{ name: 'g', queue: { lane_rules: [{ models: ['*'], lane: 'high' }] } }];
  const config = (keys: object[]) => configSchema.parse({ groups, keys });
  expect(laneWarnings(config([key('a')]))[0]).toMatch(/^Group `g` puts calls into lane `high`/);
  expect(laneWarnings(config([key('a', { lane_max: 'high' })]))).toEqual([]);
  expect(laneWarnings(config([]))).toEqual([]);
});
