/** When a pool warns, and where it says so. */
import { describe, expect, it, vi } from 'vitest';
import { SERVED } from '../../../src/core/words/signal.ts';
import {
  define,
  passAwake,
  pool,
  queueUp,
  request,
  resetPool,
  take,
  type PoolGranted,
} from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { configure, until } from '../support/worker.ts';

/** Lets time pass in steps in which holders renew, as they do. */
async function passMinutes(
  name: string,
  minutes: number,
  held: readonly PoolGranted[],
): Promise<void> {
  for (let step = 0; step < minutes * 4; step += 1) {
    passTime(15_000);
    for (const { lease } of held) lease.renew(null).catch(() => {});
    await pool(name).status();
  }
}

async function kinds(name: string): Promise<string[]> {
  return (await pool(name).warnings()).map(({ kind }) => kind);
}

async function refuse(
  name: string,
  count: number,
  kind: 'egress' | 'quota' | 'error',
): Promise<void> {
  for (let call = 0; call < count; call += 1) {
    const { lease } = await take(name, `${kind}-${call}`);
    await lease.report({ ...SERVED, kind }, false);
    await lease.release('failed', 500);
  }
}

describe('near the limit', () => {
  it('warns at 80 % after a minute, without a queue', async () => {
    await define('nearly', 5, {});
    const held: PoolGranted[] = [];
    for (const name of ['a', 'b', 'c']) held.push(await take('nearly', name));
    await passMinutes('nearly', 2, held);
    expect(await kinds('nearly')).toEqual([]);
    held.push(await take('nearly', 'd'));
    await passMinutes('nearly', 0.75, held);
    expect(await kinds('nearly')).toEqual([]);
    await passMinutes('nearly', 0.5, held);
    const [warning] = await pool('nearly').warnings();
    expect(warning).toMatchObject({
      kind: 'near_limit',
      message: '4 of 5 slots have been in use for 1 minute, and no calls are queued.',
      figures: { in_use: 4, limit: 5, queued: 0 },
    });
    for (const { lease } of held) await lease.release('success', 200);
  });

  it('warns at exactly 80 % though nobody calls, renews or looks', async () => {
    await define('silent', 5, {});
    const held: PoolGranted[] = [];
    for (const name of ['a', 'b', 'c', 'd']) held.push(await take('silent', name));
    const lines: string[] = [];
    const spy = vi.spyOn(console, 'log').mockImplementation((line: string) => {
      if (line.includes('"silent"')) lines.push(line);
    });
    passTime(60_500);
    // Its own timer is all that is left to notice it.
    await until(() => expect(lines).toHaveLength(1));
    spy.mockRestore();
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      event: 'warning',
      kind: 'near_limit',
      in_use: 4,
      limit: 5,
      queued: 0,
    });
    for (const { lease } of held) await lease.release('success', 200);
  });

  it('warns once in ten minutes, and says how many calls wait', async () => {
    await define('near', 2, { queue: { timeout_ms: 3_600_000 } });
    const held = [await take('near', 'a'), await take('near', 'b')];
    const { answer } = await queueUp('near', 'c', { sliceMs: 3_600_000 });
    await passMinutes('near', 0.75, held);
    expect(await kinds('near')).toEqual([]);
    await passMinutes('near', 0.5, held);
    const [warning] = await pool('near').warnings();
    expect(warning).toMatchObject({
      kind: 'near_limit',
      group: 'near',
      partition: null,
      figures: { in_use: 2, limit: 2, queued: 1 },
    });
    await passMinutes('near', 8, held);
    expect(await kinds('near')).toEqual(['near_limit']);
    await passMinutes('near', 3, held);
    expect(await kinds('near')).toEqual(['near_limit', 'near_limit']);
    for (const { lease } of held) await lease.release('success', 200);
    const granted = await answer;
    if (granted.kind === 'granted') await granted.lease.release('success', 200);
  });

  it('says nothing where it was told not to', async () => {
    await define('quiet', 1, { warn_at: null, queue: { timeout_ms: 3_600_000 } });
    const held = [await take('quiet', 'a')];
    const { answer } = await queueUp('quiet', 'b', { sliceMs: 3_600_000 });
    await passMinutes('quiet', 3, held);
    expect(await kinds('quiet')).toEqual([]);
    await pool('quiet').cancel('b');
    await answer;
    await held[0]?.lease.release('success', 200);
  });
});

describe('the queue', () => {
  it('warns when it grows for minutes, and when calls wait too long', async () => {
    await define('grows', 1, {
      warn_at: null,
      warn_wait_ms: 150_000,
      queue: { timeout_ms: 3_600_000 },
    });
    const held = [await take('grows', 'a')];
    const answers: Promise<unknown>[] = [];
    const seen: string[][] = [];
    for (let minute = 0; minute < 5; minute += 1) {
      for (let call = 0; call < 4; call += 1) {
        const { answer } = await queueUp('grows', `w${minute}-${call}`, { sliceMs: 3_600_000 });
        answers.push(answer);
      }
      await passMinutes('grows', 1, held);
      seen.push(await kinds('grows'));
    }
    expect(seen[1]).toEqual([]);
    expect(new Set(seen.at(-1))).toEqual(new Set(['wait_long', 'queue_growing']));
    expect((await pool('grows').metrics()).warnings_total).toEqual({
      wait_long: 1,
      queue_growing: 1,
    });
    await define('grows', 1, { draining: true }, 2);
    for (let minute = 0; minute < 5; minute += 1) {
      for (let call = 0; call < 4; call += 1) await pool('grows').cancel(`w${minute}-${call}`);
    }
    await Promise.all(answers);
    await held[0]?.lease.release('success', 200);
  });
});

describe('the upstream', () => {
  it('warns when it serves nobody from here', async () => {
    await define('far', 5);
    await refuse('far', 3, 'egress');
    expect(await pool('far').warnings()).toMatchObject([
      { kind: 'egress_refused', group: 'far', figures: { refusals: 1 } },
    ]);
  });

  it('warns when it is left alone, and when the account is empty', async () => {
    await define('broken', 20);
    await refuse('broken', 3, 'quota');
    expect(await kinds('broken')).toEqual(['quota_exhausted']);
    await refuse('broken', 10, 'error');
    expect(await kinds('broken')).toEqual(['breaker_open', 'quota_exhausted']);
    await resetPool('broken');
    expect(await kinds('broken')).toEqual(['breaker_open', 'quota_exhausted']);
  });
});

describe('a lease whose holder is gone', () => {
  it('warns', async () => {
    await define('gone', 2);
    const { lease } = await take('gone', 'a');
    await passAwake('gone', 60_000);
    expect(await pool('gone').warnings()).toMatchObject([
      {
        kind: 'lease_expired',
        message: expect.stringMatching(/^1 lease expired .* Its holder probably crashed/),
        figures: { leases: 1 },
      },
    ]);
    lease[Symbol.dispose]();
  });
});

it('keeps the last hundred, whatever happens to the instance', async () => {
  await define('many', 1_000);
  for (let warning = 0; warning < 103; warning += 1) {
    const { lease } = await take('many', `w${warning}`);
    await lease.report({ ...SERVED, kind: 'quota' }, false);
    await lease.release('refused', 429);
    passTime(600_000);
  }
  await resetPool('many');
  const kept = await pool('many').warnings();
  expect(kept).toHaveLength(100);
  expect(kept[0]?.figures).toEqual({ refusals: 103 });
});

it('goes to the receiver of the configuration, and holds up nobody', async () => {
  const { promise: received, resolve } = Promise.withResolvers<{
    text: string;
    headers: Headers;
  }>();
  const realFetch = globalThis.fetch;
  const spy = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const sent = new Request(input as string, init as RequestInit);
    if (!sent.url.startsWith('https://ops.example/')) return realFetch(input, init);
    // Here, where the pool is: its body cannot be read from elsewhere. Pools of other tests may have to tell something too.
    const text = await sent.text();
    if (text.includes('"told"')) resolve({ text, headers: sent.headers });
    return new Response(null, { status: 204 });
  });
  await configure({
    webhook: { url: 'https://ops.example/hook', secret: 'WEBHOOK_TEST' },
    groups: [{ name: 'told', limits: { max_concurrency: 5 } }],
  });
  const asked = await pool('told').acquire(request('told', 'a'));
  if (asked.kind !== 'granted') throw new Error(asked.kind);
  await asked.lease.report({ ...SERVED, kind: 'quota' }, false);
  await asked.lease.release('refused', 429);
  const sent = await received;
  expect(JSON.parse(sent.text)).toMatchObject({
    type: 'headgate.quota_exhausted',
    data: { group: 'told', figures: { refusals: 1 } },
  });
  expect(sent.headers.get('webhook-signature')).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
  spy.mockRestore();
});
