// The list of models: each key requests it from an upstream once a minute, however often callers ask.
import { beforeAll, expect, it } from 'vitest';
import { strictScope, type Strict } from '../support/strict.ts';
import { call, configure } from '../support/worker.ts';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('kept-lists');
  await configure({
    upstreams: [{ id: 'up', base_url: strict.url }],
    default_upstream: 'up',
  });
});

interface List {
  readonly data: readonly { readonly id: string }[];
}

async function list(key: string, headers: Record<string, string> = {}): Promise<List> {
  const answer = await call('/v1/models', {
    headers: { authorization: `Bearer ${key}`, ...headers },
  });
  expect(answer.status).toBe(200);
  return answer.json();
}

async function asked(): Promise<number> {
  return (await strict.stats()).uncounted;
}

it('is requested once per key, also for many simultaneous requests', async () => {
  const before = await asked();
  const all = await Promise.all(Array.from({ length: 20 }, () => list('sk-one')));
  expect(await asked()).toBe(before + 1);
  expect(all[0]?.data.length).toBeGreaterThan(0);
  for (const each of all) expect(each).toEqual(all[0]);
  expect(await list('sk-one')).toEqual(all[0]);
  expect(await asked()).toBe(before + 1);
});

it('is separate for each key, and for each account that a key names', async () => {
  const before = await asked();
  await list('sk-two');
  await list('sk-three');
  await list('sk-three', { 'openai-organization': 'org-1' });
  await list('sk-three', { 'openai-organization': 'org-1' });
  await list('sk-three', { 'user-agent': 'another' });
  expect(await asked()).toBe(before + 3);
});

it('is requested at most ten times a minute per key, whatever other headers its requests have', async () => {
  const before = await asked();
  for (let at = 0; at < 30; at += 1) await list('sk-four', { 'openai-project': `p-${at}` });
  expect(await asked()).toBe(before + 10);
});
