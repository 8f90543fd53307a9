import { afterEach, expect, it } from 'vitest';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

/**
 * Keys of one account that do not last, where Headgate hosts itself: pools whose keys had no success yet are in one object
 * there, and the slot of a call that finds out whose its key is moves out of it.
 */
const PATH = '/zai/api/paas/v4/chat/completions';

/** The provider is known to take one call at a time of this model. On a busy machine calls wait for long, and the limit grows. */
const MODEL = 'glm-5.1';
const GROUP = `auto:zai/${MODEL}`;

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const token = (timestamp: number): string =>
  `${part({ alg: 'HS256' })}.${part({ api_key: 'mine', timestamp })}.c2lnbmF0dXJl`;

const TOKENS = [token(1), token(2), token(3)] as const;

let stage: LifecycleStage;

afterEach(() => stage.close());

async function burst(key: string): Promise<number[]> {
  const calls = [1, 2, 3, 4].map((n) =>
    openChat(stage.url(), { path: PATH, model: MODEL, key, label: `${n}` }),
  );
  const statuses = await Promise.all(calls.map(({ answered }) => answered));
  await Promise.all(calls.map(({ ended }) => ended));
  return statuses;
}

const SERVED = [200, 200, 200, 200];

/** Expects that no more calls of the account ran at once than its pool allows. */
async function expectWithinLimit(): Promise<void> {
  const group = (await stage.admin.groups()).find(({ name }) => name === GROUP);
  const pool = group?.partitions.find(({ partition }) => partition?.startsWith('acct_'));
  const limit = pool?.limit?.effective ?? 0;
  const { peak, total } = stage.upstream.stats().accounts['mine'] ?? { peak: 0, total: 0 };
  expect(total).toBe(12);
  expect(peak, `with a limit of ${limit}`).toBeLessThanOrEqual(limit);
}

it('an account has its limit whatever key its calls come with, and a restart forgets no key', async () => {
  stage = await startStage({
    config: ({ url }) => ({ upstreams: [{ id: 'zai', base_url: url }] }),
    upstream: {
      accounts: Object.fromEntries(TOKENS.map((one) => [one, 'mine'])),
      chunks: 3,
      chunkDelayMs: 5,
    },
  });
  const { upstream, admin } = stage;
  for (const one of TOKENS) expect(await burst(one)).toEqual(SERVED);
  await admin.untilIdle();
  await expectWithinLimit();
  await stage.kill9();
  upstream.reset();
  await stage.start();
  // All at once: one that is not known would have a call beside the others.
  const bursts = await Promise.all(TOKENS.map(burst));
  expect(bursts).toEqual(TOKENS.map(() => SERVED));
  await expectWithinLimit();
  await until('the pool of the account is the only one', async () => {
    const names = (await admin.groups()).filter(({ name }) => name === GROUP);
    return names.length === 1 && names[0]?.partitions.length === 1;
  });
});
