import { afterEach, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

/** A limit is one for everybody, and the line before it is one too; the upstream's list is the judge. */
let stage: LifecycleStage;

afterEach(() => stage.close());

async function expectComplete(calls: readonly LifecycleOpenCall[]): Promise<void> {
  const statuses = await Promise.all(calls.map((call) => call.answered));
  const ends = await Promise.all(calls.map((call) => call.ended));
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(new Set(ends)).toEqual(new Set(['complete']));
}

it('several Workers on one namespace keep a limit of 3 together', async () => {
  stage = await startStage({
    config: practiceConfig(3),
    workers: 3,
    upstream: { limit: 3, chunks: 4, chunkDelayMs: 40 },
  });
  const urls = stage.urls();
  expect(new Set(urls).size).toBe(3);
  const calls = Array.from({ length: 36 }, (_, i) =>
    openChat(urls[i % urls.length] ?? '', { label: `call-${i}` }),
  );
  await expectComplete(calls);
  expect(stage.upstream.stats()).toMatchObject({ peak: 3, completed: 36, rejected429: 0 });
  await stage.admin.untilIdle();
});

it('GLM-5.1 and GLM-4.6 under one key peak at 1 and 10, and another key has its own', async () => {
  stage = await startStage({
    config: ({ url }) => ({ upstreams: [{ id: 'zai', base_url: url }] }),
    // The provider's own limits: a call over one of them would be refused.
    upstream: { limits: { 'glm-5.1': 1, 'glm-4.6': 10 }, chunks: 4, chunkDelayMs: 10 },
  });
  const { upstream, admin } = stage;
  const path = '/zai/api/paas/v4/chat/completions';
  const send = (key: string): LifecycleOpenCall[] =>
    ['glm-5.1', 'glm-4.6'].flatMap((model) =>
      Array.from({ length: model === 'glm-5.1' ? 3 : 24 }, (_, i) =>
        openChat(stage.url(), { path, model, key, label: `${key} ${model} ${i}` }),
      ),
    );
  await expectComplete(send('key-a'));
  expect(upstream.stats()).toMatchObject({
    rejected429: 0,
    models: { 'glm-5.1': { peak: 1, completed: 3 }, 'glm-4.6': { peak: 10, completed: 24 } },
  });
  // Of two accounts this upstream sees the sum, so it may not refuse.
  upstream.reset();
  upstream.configure({ limits: {}, silentAfterChunks: 1, silentMs: 300 });
  const calls = [...send('key-a'), ...send('key-b')];
  await until('both keys have their full share', () => upstream.stats().inFlight === 2 + 20);
  await expectComplete(calls);
  const { models } = upstream.stats();
  expect(models['glm-5.1']?.peak).toBe(2);
  expect(models['glm-4.6']?.peak).toBe(20);
  await admin.untilIdle();
  const groups = new Map((await admin.groups()).map((group) => [group.name, group]));
  for (const [name, effective] of Object.entries({ 'glm-5.1': 1, 'glm-4.': 10 })) {
    const group = groups.get(`auto:zai/${name}`);
    expect(group?.limit).toMatchObject({ effective, source: 'built_in' });
    expect(group?.partitions).toHaveLength(2);
  }
});

it('a limit that is lowered and raised in mid-flight holds at every moment', async () => {
  stage = await startStage({
    config: practiceConfig(4),
    upstream: { chunks: 10, chunkDelayMs: 60 },
  });
  const { upstream, admin } = stage;
  const calls = Array.from({ length: 24 }, (_, i) => openChat(stage.url(), { label: `call-${i}` }));
  await until('four are in flight', () => upstream.stats().inFlight === 4);
  await admin.setLimit('practice', 1);
  await until('one is left', () => upstream.stats().inFlight <= 1);
  const before = upstream.stats().total;
  upstream.reset();
  await until('some more came', () => upstream.stats().total >= 2);
  expect(before).toBeLessThan(24);
  expect(upstream.stats().peak).toBe(1);
  await admin.setLimit('practice', 6);
  await expectComplete(calls);
  expect(upstream.stats().peak).toBe(6);
  await admin.untilIdle();
});
