import { createHash } from 'node:crypto';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { practiceConfig, startStage, type LifecycleStage } from './lifecycle-stage.ts';

/** A gateway key of the callers in these tests. */
export const CLIENT_KEY = 'hg_of-somebody-who-has-no-proxy';

/** Adds to a configuration, or replaces parts of it. */
type Additions = (upstream: StrictUpstream) => Readonly<Record<string, unknown>>;

/** A Headgate of one group `practice`, which callers use by leases, calling the strict upstream themselves. */
export function startClientStage(
  limit: number,
  more: Additions = () => ({}),
): Promise<LifecycleStage> {
  const hash = `sha256:${createHash('sha256').update(CLIENT_KEY).digest('hex')}`;
  return startStage({
    upstream: { limit },
    config: (upstream) => ({
      ...(practiceConfig(limit)(upstream) as object),
      keys: [{ id: 'somebody', hash, allow: ['lease', 'lease_usage'] }],
      ...more(upstream),
    }),
  });
}
