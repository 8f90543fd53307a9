// A pool of twenty thousand leases: it comes back from resets, and all its holders with it.
import { afterAll, expect, it } from 'vitest';
import type { GroupRpc } from '../../../src/contract/rpc/group-rpc.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import {
  crashPool,
  define,
  heldBy,
  inside,
  nothingLeaks,
  passAwake,
  pool,
  request,
} from '../support/pool.ts';
import type { PoolGranted } from '../support/pool.ts';

const LEASES = 20_000;
const LIMIT = 30_000;

afterAll(nothingLeaks);

/** Takes slots inside the object: the way there is not what this is about. */
function takeMany(name: string): Promise<ManyHeld[]> {
  return inside(name, async (instance) => {
    const answers = Array.from({ length: LEASES }, (_, at) =>
      instance.acquire(request(name, `t${at}`)),
    );
    return (await Promise.all(answers)).map(heldOf);
  });
}

/** A lease without its stub, which does not outlive the object. */
type ManyHeld = Pick<PoolGranted, 'leaseId' | 'attachment'>;

function heldOf(answer: { readonly kind: string }): ManyHeld {
  if (answer.kind !== 'granted') throw new Error(answer.kind);
  const { leaseId, attachment } = answer as PoolGranted;
  return { leaseId, attachment };
}

function resumeMany(name: string, held: readonly ManyHeld[]): Promise<ManyHeld[]> {
  return inside(name, async (instance) => {
    const answers = held.map((lease) => instance.resume(heldBy(name, lease)));
    return (await Promise.all(answers)).map(heldOf);
  });
}

async function releaseMany(name: string, held: readonly ManyHeld[]): Promise<void> {
  const release = (instance: GroupRpc, lease: ManyHeld) =>
    instance.release(lease.leaseId, 'unused', null, undefined, heldBy(name, lease));
  await inside(name, async (instance) => {
    await Promise.all(held.map((lease) => release(instance, lease)));
  });
}

/** Counts of a pool. */
async function counts(name: string) {
  const {
    in_use,
    unclaimed: orphaned,
    resurrected_total,
    expired_total,
  } = await pool(name).status();
  return { in_use, unclaimed: orphaned, resurrected: resurrected_total, expired: expired_total };
}

it('comes back from a reset, and from ten in a row, with all its holders', async () => {
  await define('many', LIMIT);
  const held = await takeMany('many');
  const none = { resurrected: 0, expired: 0 };
  expect(await counts('many')).toEqual({ in_use: LEASES, unclaimed: 0, ...none });
  await crashPool('many');
  const { unclaimed } = await counts('many');
  expect(unclaimed).toBeGreaterThanOrEqual(LEASES);
  expect(unclaimed).toBeLessThanOrEqual(LIMIT);
  const resumed = await resumeMany('many', held);
  const margin = unclaimed - LEASES;
  expect(await counts('many')).toEqual({ in_use: LEASES, unclaimed: margin, ...none });
  for (let at = 0; at < 10; at += 1) {
    await crashPool('many');
    expect(await counts('many')).toEqual({ in_use: 0, unclaimed, ...none });
  }
  // Half of them resume, the others have ended meanwhile.
  const [half, others] = [resumed.slice(0, LEASES / 2), resumed.slice(LEASES / 2)];
  const back = await resumeMany('many', half);
  await releaseMany('many', others);
  expect(await counts('many')).toEqual({ in_use: LEASES / 2, unclaimed: margin, ...none });
  // They did not hear that it was done, and say it once more.
  await releaseMany('many', others);
  expect(await counts('many')).toEqual({ in_use: LEASES / 2, unclaimed: margin, ...none });
  await releaseMany('many', back);
  expect(await counts('many')).toEqual({ in_use: 0, unclaimed: margin, ...none });
  await passAwake('many', LEASE_TTL_MS);
  expect(await counts('many')).toEqual({ in_use: 0, unclaimed: 0, ...none });
});
