// A call whose group has no room goes on to the next upstream, and waits at the last one.
import { afterAll, describe, expect, it } from 'vitest';
import { refusal } from '../order/scene.ts';
import { nothingLeaks, pool, untilStatus } from '../support/pool.ts';
import { change } from '../support/worker.ts';
import { ask, heardBy, hold, letGo, newScene, served, servedBy } from './scene.ts';

afterAll(nothingLeaks);

const TO_B = { spill_to: ['b'] as const };
const TO_BOTH = { spill_to: ['b', 'c'] as const };
const PATIENT = { ...TO_B, after_ms: 60_000 };

describe('a call goes on to the next upstream', () => {
  it('when its group is full, at once', async () => {
    const scene = await newScene({ spill: TO_BOTH });
    expect(await servedBy(scene, 'first')).toBe('a');
    const holder = await hold(scene, 'a');
    const { by, headers } = await served(scene);
    expect(by).toBe('b');
    expect(headers.get('headgate-groups')).toBe(scene.name('b'));
    await letGo(scene, holder);
  });

  it('when that one is full too, to the one after it', async () => {
    const scene = await newScene({ spill: TO_BOTH });
    const holders = [await hold(scene, 'a'), await hold(scene, 'b')];
    expect(await servedBy(scene)).toBe('c');
    await letGo(scene, ...holders);
  });

  it('when it has waited for after_ms', async () => {
    const scene = await newScene({ spill: { ...TO_B, after_ms: 150 } });
    const holder = await hold(scene, 'a');
    const { by, headers } = await served(scene);
    expect(by).toBe('b');
    expect(Number(headers.get('headgate-wait-ms'))).toBeGreaterThanOrEqual(150);
    await letGo(scene, holder);
  });

  it('not before: it takes the slot of its own upstream if one comes free', async () => {
    const scene = await newScene({ spill: PATIENT });
    const holder = await hold(scene, 'a');
    const one = ask(scene, 'waits');
    await untilStatus(scene.name('a'), { queued: 1 });
    holder.leave();
    expect(await one.end).toBe('done');
    expect(await heardBy(scene, 'waits')).toBe('a');
    await letGo(scene, holder);
  });

  it('when its queue is full, whatever after_ms is', async () => {
    const scene = await newScene({ spill: PATIENT, groups: { a: { queue: { max_length: 0 } } } });
    const holder = await hold(scene, 'a');
    expect(await servedBy(scene)).toBe('b');
    await letGo(scene, holder);
  });

  it.each([
    ['is paused', { paused: true }],
    ['grants nothing', { limits: { max_concurrency: 0 } }],
    ['is being drained', { draining: true }],
  ])('when its group %s', async (_, a) => {
    expect(await servedBy(await newScene({ spill: TO_B, groups: { a } }))).toBe('b');
  });

  it('when its group has used up its budget, whatever after_ms is', async () => {
    const a = { limits: { budget_usd: { per_day: 0.000_001 } } };
    const prices = { '*': { input: 1, output: 1 } };
    const setup = { spill: PATIENT, groups: { a }, upstreams: { a: { prices } } };
    expect(await servedBy(await newScene(setup))).toBe('b');
  });

  it('when its upstream has asked for a pause', async () => {
    const scene = await newScene({ spill: TO_B, settings: { failWaitMs: 60_000 } });
    await scene.a.failNext('requests');
    expect(await servedBy(scene, 'first')).toBe('ab');
    expect((await pool(scene.name('a')).status()).paused_until).not.toBeNull();
    expect(await servedBy(scene)).toBe('b');
  });

  it('when its upstream is broken', async () => {
    const scene = await newScene({ spill: TO_B });
    await scene.a.failNext('error', 100);
    let failed = 0;
    while ((await pool(scene.name('a')).status()).breaker === 'closed') {
      failed += 1;
      expect(await servedBy(scene, `failed-${failed}`)).toBe('ab');
    }
    expect(await servedBy(scene)).toBe('b');
  });
});

describe('at the last upstream a call waits', () => {
  it('until a slot is free', async () => {
    const scene = await newScene({ spill: TO_BOTH });
    const others = [await hold(scene, 'a'), await hold(scene, 'b')];
    const last = await hold(scene, 'c');
    const one = ask(scene, 'waits');
    await untilStatus(scene.name('c'), { queued: 1 });
    last.leave();
    expect(await one.end).toBe('done');
    expect(await heardBy(scene, 'waits')).toBe('c');
    await letGo(scene, ...others, last);
  });

  it('until its own deadline, counted from its arrival', async () => {
    const scene = await newScene({ spill: { ...TO_B, after_ms: 100 } });
    const holders = [await hold(scene, 'a'), await hold(scene, 'b')];
    const headers = { 'headgate-max-wait': '400ms' };
    const startedAt = Date.now();
    const late = await refusal(ask(scene, 'late', { headers }));
    expect(late).toMatchObject({ status: 429, reason: 'queue_timeout' });
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(400);
    expect(await heardBy(scene, 'late')).toBe('');
    await letGo(scene, ...holders);
  });

  it('no moment, if it does not want to', async () => {
    const scene = await newScene({ spill: PATIENT });
    const holders = [await hold(scene, 'a'), await hold(scene, 'b')];
    const headers = { 'headgate-max-wait': '0' };
    expect(await refusal(ask(scene, 'busy', { headers }))).toMatchObject({ reason: 'busy' });
    await letGo(scene, ...holders);
  });

  it('which is its own, where no other one can take it', async () => {
    const upstreams = { b: { auth: { secret: 'UPSTREAM_NOT_SET' } } };
    const scene = await newScene({ spill: TO_B, upstreams });
    const holder = await hold(scene, 'a');
    const one = ask(scene, 'waits');
    await untilStatus(scene.name('a'), { queued: 1 });
    holder.leave();
    expect(await one.end).toBe('done');
    expect(await heardBy(scene, 'waits')).toBe('a');
    await letGo(scene, holder);
  });
});

it('a call does not slip past the groups of a model that its own upstream has none of', async () => {
  const scene = await newScene({ spill: TO_BOTH });
  const match = { upstreams: [scene.name('b')], models: ['m'] };
  await change('PUT', '/groups/of-m', { match, limits: { max_concurrency: 0 } });
  const holder = await hold(scene, 'a');
  expect(await servedBy(scene)).toBe('c');
  await letGo(scene, holder);
});

it('one list leads from each of two upstreams to the other', async () => {
  const scene = await newScene({ spill: TO_B });
  const upstreams = [scene.name('a'), scene.name('b')];
  await change('PATCH', `/groups/${scene.name('a')}`, { on_saturated: 'queue' });
  const both = { match: { upstreams }, on_saturated: { spill_to: upstreams } };
  await change('PUT', '/groups/both', both);
  const ofA = await hold(scene, 'a');
  expect(await servedBy(scene)).toBe('b');
  const ofB = await hold(scene, 'b');
  const one = ask(scene, 'waits', {}, 'b');
  await untilStatus(scene.name('a'), { queued: 1 });
  ofA.leave();
  expect(await one.end).toBe('done');
  expect(await heardBy(scene, 'waits')).toBe('a');
  await letGo(scene, ofA, ofB);
});

it('a call that went elsewhere takes nothing of the limits of its own group', async () => {
  const limits = { max_concurrency: 1, rpd: 100, tpd: 100_000 };
  const scene = await newScene({ spill: TO_B, groups: { a: { limits }, b: { limits } } });
  const holder = await hold(scene, 'a');
  const left = async (letter: 'a' | 'b') => {
    const { rates } = await pool(scene.name(letter)).status();
    return [rates?.['rpd']?.left, rates?.['tpd']?.left];
  };
  const before = await left('a');
  for (const [index, label] of ['first', 'second'].entries()) {
    expect(await servedBy(scene, label)).toBe('b');
    expect((await left('b'))[0]).toBe(99 - index);
  }
  expect(await left('a')).toEqual(before);
  await letGo(scene, holder);
});
