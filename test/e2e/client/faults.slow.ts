// The client over a network that loses requests and answers, before a real Headgate: the limit holds, and nothing is left behind.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createHeadgate, type Lease } from '../../../packages/client/src/index.ts';
import { CLIENT_KEY, startClientStage } from '../support/client-stage.ts';
import { createRandom } from '../support/lifecycle-random.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

const LIMIT = 3;
const WORKS = 150;

let stage: LifecycleStage;

beforeAll(async () => {
  stage = await startClientStage(LIMIT);
});

afterAll(() => stage?.close());

const random = createRandom(20_260);

/** A network that loses one request in ten, and one answer in ten. */
const lossy: typeof fetch = async (url, init) => {
  const fate = random.pick([
    [8, 'arrives'],
    [1, 'lost'],
    [1, 'answer lost'],
  ] as const);
  if (fate === 'lost') throw new TypeError('fetch failed');
  const answer = await fetch(url, init);
  await answer.clone().arrayBuffer();
  if (fate === 'answer lost') throw new TypeError('terminated');
  return answer;
};

const pause = (): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, random.between(0, 10)));

it(`runs ${WORKS} works, some of which throw, leave, stream or are refused`, async () => {
  const gate = createHeadgate({ url: stage.url(), key: CLIENT_KEY, fetch: lossy });
  let running = 0;
  let peak = 0;
  const enter = (): void => {
    running += 1;
    peak = Math.max(peak, running);
  };
  const leave = (): void => {
    running -= 1;
  };
  const held = async <T>(what: () => T): Promise<T> => {
    enter();
    try {
      await pause();
      return what();
    } finally {
      leave();
    }
  };
  /** Works until as many work at once as may. */
  const meet = async (): Promise<void> => {
    enter();
    await until('all slots are used', () => peak === LIMIT);
    leave();
  };
  async function* stream(): AsyncGenerator<number> {
    enter();
    try {
      for (let n = 0; n < 3; n += 1) {
        yield n;
        await pause();
      }
    } finally {
      leave();
    }
  }
  const refuse = (): never => {
    throw Object.assign(new Error('busy'), { status: 429, headers: { 'retry-after-ms': '20' } });
  };
  const request = { group: 'practice', maxWaitMs: 120_000 };
  const kinds = {
    works: () => gate.withLease(request, () => held(() => 'done')),
    throws: () => gate.withLease(request, () => held(() => Promise.reject(new Error('broken')))),
    streams: async () => Array.fromAsync(await gate.withLease(request, stream)),
    breaksOff: async () => {
      for await (const n of await gate.withLease(request, stream)) if (n === 1) break;
    },
    leaves: () => {
      const signal = AbortSignal.timeout(random.between(1, 200));
      return gate.withLease({ ...request, signal }, () => held(() => 'done'));
    },
    isRefusedOnce: () => {
      let attempts = 0;
      return gate.withLease(request, () => held(() => ((attempts += 1) === 1 ? refuse() : 'done')));
    },
  };
  // Before refusals teach the group that there is less room, all of it is used.
  await Promise.all(Array.from({ length: LIMIT }, () => gate.withLease(request, meet)));
  expect(peak).toBe(LIMIT);
  const works = Array.from({ length: WORKS }, () => {
    const kind = random.pick([
      [4, 'works'],
      [1, 'throws'],
      [2, 'streams'],
      [1, 'breaksOff'],
      [1, 'leaves'],
      [1, 'isRefusedOnce'],
    ] as const);
    return { kind, end: kinds[kind]() };
  });
  const ends = await Promise.allSettled(works.map(({ end }) => end));
  expect(peak).toBeLessThanOrEqual(LIMIT);
  expect(running).toBe(0);
  const failed = ends.flatMap((end, at) =>
    end.status === 'rejected' ? [`${works[at]?.kind}: ${String(end.reason)}`] : [],
  );
  const expected = /^(?:throws: Error: broken|leaves: TimeoutError|isRefusedOnce: Error: busy)/;
  expect(failed.filter((text) => !expected.test(text))).toEqual([]);
  // Nobody waits for slots that are given back behind the back of their work.
  await until(
    'all slots are free',
    async () => (await stage.admin.group('practice')).in_use === 0,
    {
      withinMs: 60_000,
      everyMs: 100,
    },
  );
  expect((await stage.admin.group('practice')).queued).toBe(0);
}, 180_000);

it('stops work whose lease an operator takes back', async () => {
  const gate = createHeadgate({ url: stage.url(), key: CLIENT_KEY });
  const work = gate.withLease(
    { group: 'practice' },
    async (lease: Lease) =>
      new Promise((_resolve, reject) => {
        const take = async (): Promise<void> => {
          const path = `/groups/practice/leases/${encodeURIComponent(lease.ids[0] ?? '')}`;
          await stage.admin.request('DELETE', path);
        };
        lease.signal.addEventListener('abort', () => reject(new Error('stopped')));
        take().catch(reject);
      }),
  );
  await expect(work).rejects.toMatchObject({
    name: 'HeadgateError',
    reason: 'lease_revoked',
    cause: { message: 'stopped' },
  });
  await until('its slot is free', async () => (await stage.admin.group('practice')).in_use === 0);
});
