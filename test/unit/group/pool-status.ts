import { groupSchema } from '../../../src/contract/config/group.ts';
import type { PoolStatus } from '../../../src/contract/status.ts';
import { definitionFrom } from '../../../src/group/definition.ts';
import { poolStatus } from '../../../src/group/observe/status.ts';
import { UNUSED } from '../../../src/overview/unused-group.ts';
import type { TestGroup } from '../../support/core-builders.ts';

export const CONFIG = JSON.stringify(
  groupSchema.parse({ name: 'g', limits: { max_concurrency: 4 } }),
);
const DEFINITION = definitionFrom({ version: 1, routingVersion: 1, config: CONFIG }, null);

/** Returns the status of a pool that no call has reached lately. */
export function statusOf(group: TestGroup): PoolStatus {
  const seen = {
    wait_p50_ms: null,
    wait_p95_ms: null,
    last_hour: UNUSED.last_hour,
    passedUnlimited: 0,
    passedUnlimitedAt: null,
    idleMs: 0,
  };
  return poolStatus({ group: 'g', partition: null }, DEFINITION, group.state, seen, group.now);
}
