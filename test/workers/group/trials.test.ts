// The object of all pools on trial, while one of them is handed over: callers wait for the hand-over and do not retry in a
// loop, which would delay it.
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { DirectoryObject } from '../../../src/directory/directory-object.ts';
import { poolName } from '../../../src/contract/pool-name.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import { TrialsObject } from '../../../src/group/trials-object.ts';
import { inside, nothingLeaks, pool, request } from '../support/pool.ts';
import { configure, env, until } from '../support/worker.ts';

const GROUP = 'auto:openai';

afterEach(() => vi.restoreAllMocks());
afterAll(nothingLeaks);

/** Parks the hand-over of a pool at its message to the directory. */
function parkHandOver() {
  // oxlint-disable-next-line typescript/unbound-method -- called with its object below
  const { share } = DirectoryObject.prototype;
  const go = Promise.withResolvers<void>();
  const asked = vi
    .spyOn(DirectoryObject.prototype, 'share')
    .mockImplementation(async function parked(this: DirectoryObject, ...of) {
      await go.promise;
      return share.apply(this, of);
    });
  return { asked, go };
}

it.each(['done', 'failed'])(
  'a call with an older configuration waits until a hand-over is %s',
  async (end) => {
    await configure({ groups: [{ name: `any-${end}` }] });
    const partition = `older-${end}`;
    const fields = {
      group: GROUP,
      partition,
      assumed: { slotsMax: 8, source: 'unknown' },
    } as const;
    const { asked, go } = parkHandOver();
    if (end === 'failed') {
      const error = new Error('out of reach');
      vi.spyOn(GroupObject.prototype, 'takeOver').mockRejectedValueOnce(error);
    }
    await inside(`trials-${end}`, async (_instance, ctx) => {
      const trials = new TrialsObject(ctx, env);
      const first = await trials.acquire(request(GROUP, 'first', fields));
      if (first.kind !== 'granted') throw new Error(first.kind);
      await first.lease.release('success', 200);
      await until(() => expect(asked).toHaveBeenCalledOnce());
      const older = trials.acquire(request(GROUP, 'older', { ...fields, configVersion: 0 }));
      let isAnswered = false;
      older.then(() => (isAnswered = true)).catch(() => {});
      // The object still answers other calls, including those that wait for a message of another object.
      for (let others = 0; others < 5; others += 1) await pool('another').status();
      expect(isAnswered).toBe(false);
      go.resolve();
      expect((await older).kind).toBe(end === 'done' ? 'proved' : 'moved');
    });
    expect(await pool(poolName(GROUP, partition)).status()).toMatchObject({ in_use: 0 });
  },
);
