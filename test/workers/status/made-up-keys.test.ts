// A made-up key costs little at `/status`: pools without its calls are not queried again and again.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { CallerStatus } from '../../../src/contract/caller-api.ts';
import { GroupObject } from '../../../src/index.ts';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { call, configure, open, until } from '../support/worker.ts';

const GROUPS = 12;

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('made-up', { limit: 50 });
  await configure({
    upstreams: [{ id: 'up', base_url: strict.url }],
    groups: Array.from({ length: GROUPS }, (_, index) => ({
      name: `g${index}`,
      match: { upstreams: ['up'], models: [index === 0 ? 'gpt-4o-mini' : `m${index}`] },
      limits: { max_concurrency: 2 },
    })),
  });
});

afterAll(nothingLeaks);

async function statusOf(key: string): Promise<CallerStatus> {
  const answer = await call('/status', { headers: { authorization: `Bearer ${key}` } });
  expect(answer.status).toBe(200);
  return answer.json();
}

it('all pools are queried for few made-up keys, and the others get the number of pools left out', async () => {
  const callsOf = vi.spyOn(GroupObject.prototype, 'callsOf');
  try {
    const began = performance.now();
    const all = await Promise.all(
      Array.from({ length: 40 }, (_, index) => statusOf(`sk-made-up-${index}`)),
    );
    const seconds = Math.ceil((performance.now() - began) / 1_000) + 1;
    expect(callsOf.mock.calls.length).toBeLessThanOrEqual(2 * seconds * GROUPS);
    expect(all.every(({ groups }) => groups.length === 0)).toBe(true);
    const limited = all.filter(({ left_out }) => left_out === GROUPS);
    expect(limited.length).toBeGreaterThanOrEqual(40 - 2 * seconds);
  } finally {
    callsOf.mockRestore();
  }
});

it('a key that has a call under way, or had a success, sees everything however many others ask', async () => {
  await strict.configure({ chunks: 5_000, chunkDelayMs: 20 });
  const headers = { authorization: 'Bearer sk-real' };
  const waiting = open('/up/v1/chat/completions', 'waiting', { headers });
  await until(async () => expect((await strict.stats()).inFlight).toBe(1));
  await Promise.all(Array.from({ length: 10 }, (_, index) => statusOf(`sk-more-${index}`)));
  expect(await statusOf('sk-real')).toMatchObject({ left_out: 0, groups: [{ name: 'g0' }] });
  waiting.leave();
  await strict.configure({ chunks: 1, chunkDelayMs: 0 });
  const done = open('/up/v1/chat/completions', 'done', { headers });
  expect(await done.end).toBe('done');
  await Promise.all(Array.from({ length: 10 }, (_, index) => statusOf(`sk-again-${index}`)));
  expect((await statusOf('sk-real')).left_out).toBe(0);
});
