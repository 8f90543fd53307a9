// A pool on trial is handed over to its own object with what it holds: that is covered on disk before anybody is
// sent there, and its holders come through resets of the new object by what they have from the trial.
import { afterAll, expect, it } from 'vitest';
import { poolName } from '../../../src/contract/pool-name.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { Verification } from '../../../src/group/verification.ts';
import { Timers } from '../../../src/runtime/async.ts';
import {
  crashPool,
  heldBy,
  inside,
  nothingLeaks,
  passAwake,
  pool,
  request,
  storedBoundIn,
  tables,
} from '../support/pool.ts';
import { env } from '../support/worker.ts';

const GROUP = 'auto:openai';

afterAll(nothingLeaks);

/** Makes a pool on trial that holds two slots, and hands it over. */
function handedOver(partition: string) {
  const name = poolName(GROUP, partition);
  const assumed = { slotsMax: 8, source: 'unknown' as const };
  const fields = { group: GROUP, partition, assumed, configVersion: 0 };
  return inside('trials', async (_instance, ctx) => {
    const events = {
      onProved: () => Promise.resolve(),
      onIdle: () => undefined,
      onHeldById: () => undefined,
    };
    const verification = new Verification(
      ctx,
      env,
      { name, timers: new Timers(), held: 0 },
      events,
    );
    const held = [];
    for (const ticketId of ['a', 'b']) {
      const answer = await verification.call((own) =>
        own.acquire(request(GROUP, ticketId, fields)),
      );
      if (answer?.kind !== 'granted') throw new Error(answer?.kind);
      held.push({ leaseId: answer.leaseId, attachment: answer.attachment });
    }
    await verification.handOver(pool(name));
    return held.map((lease) => heldBy(GROUP, lease, { partition, assumed }));
  });
}

it('what it holds is there by its ids, and covered on disk', async () => {
  const name = poolName(GROUP, 'covered');
  await handedOver('covered');
  expect(await pool(name).status()).toMatchObject({ in_use: 2, unclaimed: 0 });
  expect((await pool(name).leases()).map(({ id }) => id)).toEqual(['a.1', 'b.1']);
  expect(await tables(name)).toContain('bound');
  const bound = await inside(name, (_instance, state) => storedBoundIn(state));
  expect(bound).toMatchObject({ mark: 2, held: 2 });
  for (const id of ['a.1', 'b.1']) await pool(name).release(id, 'unused', null);
});

it('holders that know it from the trial alone claim it after a reset of its object', async () => {
  const name = poolName(GROUP, 'claimed');
  const [a, b] = await handedOver('claimed');
  if (a === undefined || b === undefined) throw new Error('two were held');
  await crashPool(name);
  expect(await pool(name).status()).toMatchObject({ in_use: 0, unclaimed: 2 });
  const resumed = await pool(name).resume(a);
  if (resumed.kind !== 'granted') throw new Error(resumed.kind);
  expect(await pool(name).status()).toMatchObject({ in_use: 1, unclaimed: 1 });
  await pool(name).release(b.leaseId, 'unused', null, undefined, b);
  expect(await pool(name).status()).toMatchObject({ unclaimed: 0, resurrected_total: 0 });
  await resumed.lease.release('unused', null);
  await passAwake(name, LEASE_TTL_MS);
});
