// The wall clock of the machine is set back while calls run and wait. Needs Linux and a C compiler, otherwise it is skipped.
import OpenAI from 'openai';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildSkewedClock } from '../../support/skewed-clock.ts';
import { openChat, type LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { practiceConfig, startStage, type LifecycleStage } from '../support/lifecycle-stage.ts';
import { clock, FIGURE } from '../support/lifecycle-wait.ts';

const LIMIT = 2;

/** Longest pause between two calls at the upstream while others wait. A step back of 5 s would take longer. */
const PAUSE_MS_MAX = 3_000;

const skewed = await buildSkewedClock();

let stage: LifecycleStage;

beforeEach(async () => {
  skewed?.set(0);
  stage = await startStage({
    config: practiceConfig(LIMIT),
    upstream: { runs: true, runLimit: LIMIT },
    env: { ...skewed?.env },
  });
});
afterEach(() => stage.close());
afterAll(() => skewed?.remove());

const open = (label: string, headers: Readonly<Record<string, string>> = {}): LifecycleOpenCall =>
  openChat(stage.url(), {
    label,
    headers: { 'x-strict-chunks': '10', 'x-strict-chunk-delay-ms': '100', ...headers },
  });

/** The longest time between the first and last call in which the upstream had fewer calls than allowed. */
function longestPause(sinceMs: number): number {
  const times = stage.upstream
    .stats()
    .arrivals.map(({ at }) => at)
    .filter((at) => at >= sinceMs);
  return Math.max(...times.map((at, index) => at - (times[index - 1] ?? sinceMs)));
}

describe.skipIf(skewed === null).each([5, 60, 600])('by %i s', (seconds) => {
  it('queued calls and new calls get slots', FIGURE, async () => {
    const before = ['a', 'b', 'c', 'd'].map((label) => open(label));
    await stage.admin.untilGroup('practice', { in_use: LIMIT, queued: 2 });
    const setAt = clock();
    skewed?.set(-seconds);
    const later = ['e', 'f'].map((label) => open(label));
    for (const call of [...before, ...later]) {
      expect(await call.answered).toBe(200);
      expect(await call.ended).toBe('complete');
    }
    expect(longestPause(setAt)).toBeLessThan(PAUSE_MS_MAX);
    await stage.admin.untilIdle();
  });

  it('a call does not wait longer than its maximum', FIGURE, async () => {
    const held = ['a', 'b'].map((label) => open(label, { 'x-strict-chunks': '300' }));
    await stage.admin.untilGroup('practice', { in_use: LIMIT });
    skewed?.set(-seconds);
    const setAt = clock();
    const refused = open('c', { 'headgate-max-wait': '200ms' });
    expect(await refused.answered).toBe(429);
    expect(refused.headers()['headgate-reason']).toBe('queue_timeout');
    expect(clock() - setAt).toBeLessThan(PAUSE_MS_MAX);
    for (const call of held) call.leave('RST');
    await stage.admin.untilIdle();
  });
});

it.skipIf(skewed === null)('the lease of a background run is renewed in time', async () => {
  const client = new OpenAI({
    baseURL: `${stage.url()}/practice/v1`,
    apiKey: 'sk-mine',
    maxRetries: 0,
  });
  await client.responses.create({ model: 'gpt-5', input: 'x', background: true });
  await stage.admin.untilGroup('practice', { in_use: 1 });
  const expiresAt = async (): Promise<string | undefined> =>
    (await stage.admin.leases('practice'))[0]?.expires_at;
  const before = await expiresAt();
  skewed?.set(-600);
  await expect.poll(expiresAt, { timeout: 40_000, interval: 200 }).not.toBe(before);
});
