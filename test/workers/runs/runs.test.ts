// What goes on at its upstream after the answer holds its slot until it ends: the upstream counts its runs.
import { readerOf } from '../../../src/call/answer/hold-run.ts';
import { RunEvents } from '../../../src/upstream/operation/runs.ts';
import { runInDurableObject } from 'cloudflare:test';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { nothingLeaks, passAwake, pool, resetPool, untilStatus } from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { call, until } from '../support/worker.ts';
import {
  OWN,
  poll,
  renewNow,
  resetRuns,
  runScene,
  type RunScene,
  runsObject,
  start,
  started,
  storedIds,
  storedLeases,
  storedRuns,
} from './scene.ts';

afterAll(nothingLeaks);

describe.each<
  [name: string, path: string, json: object, ask: (id: string) => string, dialect: string]
>([
  [
    'responses',
    '/v1/responses',
    { model: 'gpt-5', background: true, input: 'x' },
    (id) => `/v1/responses/${id}`,
    'openai',
  ],
  [
    'threads',
    '/v1/threads/t1/runs',
    { assistant_id: 'a' },
    (id) => `/v1/threads/t1/runs/${id}`,
    'openai',
  ],
  ['videos', '/v1/videos', { model: 'sora-2', prompt: 'x' }, (id) => `/v1/videos/${id}`, 'openai'],
  [
    'bedrock',
    '/async-invoke',
    { modelId: 'amazon.nova-reel-v1:0' },
    (id) => `/async-invoke/${encodeURIComponent(id)}`,
    'bedrock',
  ],
])('%s', (name, path, json, ask, dialect) => {
  it('hold a slot until their caller sees that they have ended', async () => {
    const scene = await runScene(`run-${name}`, 1, { upstream: { dialect } });
    const first = await started(scene, path, json);
    expect(await pool(scene.group).leases()).toMatchObject([{ kind: 'run' }]);
    const second = started(scene, path, json);
    await untilStatus(scene.group, { in_use: 1, queued: 1 });
    expect(await poll(scene, ask(first))).not.toBe('completed');
    await untilStatus(scene.group, { in_use: 1, queued: 1 });
    await scene.strict.endRun('completed', first);
    expect(await poll(scene, ask(first))).toBe('completed');
    const next = await second;
    await scene.strict.endRun('failed', next);
    expect(await poll(scene, ask(next))).toBe('failed');
    await untilStatus(scene.group, { in_use: 0 });
    expect((await scene.strict.stats()).runs).toMatchObject({ peak: 1, total: 2, rejected: 0 });
    await until(async () => expect(await storedRuns(scene)).toBe(0));
  });
});

it('the peak of runs at the upstream never exceeds the limit', async () => {
  const scene = await runScene('run-many', 3);
  const all = Array.from({ length: 12 }, async () => {
    const id = await started(scene);
    await scene.strict.endRun('completed', id);
    await poll(scene, `/v1/responses/${id}`);
  });
  await Promise.all(all);
  const { runs } = await scene.strict.stats();
  expect(runs).toMatchObject({ total: 12, rejected: 0, inFlight: 0 });
  expect(runs.peak).toBeLessThanOrEqual(3);
  await untilStatus(scene.group, { in_use: 0 });
});

it('what is not a run gives its slot back with its answer', async () => {
  const scene = await runScene('run-none', 1);
  for (const json of [
    { model: 'gpt-5', input: 'background' },
    { model: 'gpt-5', input: 'x', background: false },
    { model: 'gpt-5', input: 'background', stream: true, tools: [{ background: 1 }] },
  ]) {
    await (await start(scene, '/v1/responses', json)).text();
    await untilStatus(scene.group, { in_use: 0 });
  }
  expect((await scene.strict.stats()).runs).toMatchObject({ total: 0 });
});

describe('a run that streams', () => {
  const json = { model: 'gpt-5', input: 'x', background: true, stream: true };

  it('gives its slot back with its last event', async () => {
    const scene = await runScene('run-stream', 1);
    const answer = await start(scene, '/v1/responses', json);
    await untilStatus(scene.group, { in_use: 1 });
    await scene.strict.endRun('completed');
    expect(await answer.text()).toContain('response.completed');
    await untilStatus(scene.group, { in_use: 0 });
    expect(await storedRuns(scene)).toBe(0);
  });

  it.each([
    ['plain', {}],
    ['gzip although it was asked for without', { 'x-strict-gzip': '1' }],
    ['brotli although it was asked for without', { 'x-strict-brotli': '1' }],
    ['zstd although it was asked for without', { 'x-strict-zstd': '1' }],
  ])(
    'goes on with its slot where its caller leaves, until another stream says that it is over: %s',
    async (what, headers) => {
      const scene = await runScene(`run-left-${what.split(' ', 1)[0]}`, 1);
      const caller = new AbortController();
      const { signal } = caller;
      const answer = await start(scene, '/v1/responses', json, { signal, headers });
      await answer.body?.getReader().read();
      caller.abort();
      await until(async () => expect(await storedRuns(scene)).toBe(1));
      await untilStatus(scene.group, { in_use: 1 });
      expect(await pool(scene.group).leases()).toMatchObject([{ kind: 'run' }]);
      const [id] = await storedIds(scene);
      const again = await call(`/${scene.id}/v1/responses/${id}?stream=true`, {
        headers: { ...OWN, ...headers },
      });
      await scene.strict.endRun('completed');
      await again.arrayBuffer();
      await untilStatus(scene.group, { in_use: 0 });
      expect((await scene.strict.stats()).runs).toMatchObject({ peak: 1, total: 1, inFlight: 0 });
    },
  );
});

it('a stream in an unknown encoding is not read, and is logged', () => {
  const log = vi.spyOn(console, 'log');
  const { headers } = new Response(null, { headers: { 'content-encoding': 'compress' } });
  const located = { upstream: { id: 'run-packed' } } as Parameters<typeof readerOf>[2];
  expect(readerOf({ headers } as Response, new RunEvents(), located)).toBeNull();
  const said = log.mock.calls.flat().join('\n');
  expect(said).toContain('"event":"run_unreadable"');
  expect(said).toContain('"encoding":"compress"');
});

const utf16 = (text: string): ArrayBuffer =>
  Uint16Array.from(`\ufeff${text}`, (char) => char.charCodeAt(0)).buffer;

it.each<[string, BodyInit, Record<string, string>]>([
  ['by escapes', String.raw`{"model":"gpt-5","b\u0061ckground":true,"input":"x"}`, {}],
  ['in another case', '{"model":"gpt-5","Background":true,"input":"x"}', {}],
  ['in UTF-16', utf16('{"model":"gpt-5","background":true,"input":"x"}'), {}],
  ['in text', '{"model":"gpt-5","background":true}', { 'content-type': 'text/plain' }],
  ['behind another field', '{"background":false,"model":"gpt-5","background":true}', {}],
])('a call that asks for a run %s holds its slot as its answer says', async (_, body, more) => {
  const scene = await runScene('run-spelt', 1);
  const headers = { 'content-type': 'application/json', 'accept-encoding': 'br', ...more };
  const answer = await start(scene, '/v1/responses', undefined, { method: 'POST', body, headers });
  const { id, status } = await answer.json<{ id: string; status: string }>();
  expect(status).toBe('queued');
  await untilStatus(scene.group, { in_use: 1 });
  expect(await pool(scene.group).leases()).toMatchObject([{ kind: 'run' }]);
  await scene.strict.endRun('completed');
  await poll(scene, `/v1/responses/${id}`);
  await untilStatus(scene.group, { in_use: 0 });
});

it('a run that is cancelled by its caller frees its slot', async () => {
  const scene = await runScene('run-cancelled', 1);
  const id = await started(scene);
  expect(await poll(scene, `/v1/responses/${id}/cancel`, 'POST')).toBe('cancelled');
  await untilStatus(scene.group, { in_use: 0 });
});

it('a run whose path a group names is cancelled without a slot, and seen to end with one', async () => {
  const match = { upstreams: ['run-named'], paths: ['/v1/*'] };
  const scene = await runScene('run-named', 1, { match });
  const cancelled = await started(scene);
  expect(await poll(scene, `/v1/responses/${cancelled}/cancel`, 'POST')).toBe('cancelled');
  await untilStatus(scene.group, { in_use: 0 });
  const asked = { ...match, upstreams: ['run-asked'], methods: ['GET' as const, 'POST' as const] };
  const counted = await runScene('run-asked', 2, { match: asked });
  const id = await started(counted);
  await counted.strict.endRun('completed', id);
  expect(await poll(counted, `/v1/responses/${id}`)).toBe('completed');
  await untilStatus(counted.group, { in_use: 0 });
});

it('a run that waits for its caller holds nothing until that has answered', async () => {
  const scene = await runScene('run-tools', 1);
  const id = await started(scene, '/v1/threads/t1/runs', { assistant_id: 'a' });
  await scene.strict.endRun('requires_action', id);
  expect(await poll(scene, `/v1/threads/t1/runs/${id}`)).toBe('requires_action');
  await untilStatus(scene.group, { in_use: 0 });
  const again = await started(scene, `/v1/threads/t1/runs/${id}/submit_tool_outputs`, {
    tool_outputs: [],
  });
  expect(again).toBe(id);
  await untilStatus(scene.group, { in_use: 1 });
  await scene.strict.endRun('completed', id);
  await poll(scene, `/v1/threads/t1/runs/${id}`);
  await untilStatus(scene.group, { in_use: 0 });
});

it('nobody asks: its slot goes back when its time is up', async () => {
  const scene = await runScene('run-bound', 1, { holds: { max_run_ms: 100_000 } });
  await started(scene);
  for (let passed = 0; passed < 96_000; passed += 12_000) {
    await passAwake(scene.group, 12_000);
    await renewNow(scene);
    expect(await pool(scene.group).status()).toMatchObject({ in_use: 1 });
  }
  await passAwake(scene.group, 12_000);
  await renewNow(scene);
  await untilStatus(scene.group, { in_use: 0 });
  expect(await storedRuns(scene)).toBe(0);
  await scene.strict.endRun('completed');
});

it('max_hold_ms bounds it too, and 0 holds none', async () => {
  const short = await runScene('run-short', 1, { holds: { max_hold_ms: 5_000 } });
  await started(short);
  await untilStatus(short.group, { in_use: 1 });
  passTime(6_000);
  await renewNow(short);
  await untilStatus(short.group, { in_use: 0 });
  const none = await runScene('run-off', 1, { holds: { max_run_ms: 0 } });
  await started(none);
  await untilStatus(none.group, { in_use: 0 });
  expect(await storedRuns(none)).toBe(0);
});

describe('resets', () => {
  it.each(['pool', 'runs', 'both'])('of the %s lose no run', async (what) => {
    const scene = await runScene(`run-reset-${what}`, 1);
    const id = await started(scene);
    const reset = async (): Promise<void> => {
      if (what !== 'runs') await resetPool(scene.group);
      if (what !== 'pool') await resetRuns(scene);
      await passAwake(scene.group, 12_000);
      await renewNow(scene);
    };
    for (let times = 0; times < 6; times += 1) {
      await reset();
      expect(await pool(scene.group).status()).toMatchObject({ in_use: 1, unclaimed: 0 });
      expect(await pool(scene.group).leases()).toMatchObject([{ kind: 'run' }]);
    }
    await scene.strict.endRun('completed', id);
    await poll(scene, `/v1/responses/${id}`);
    await untilStatus(scene.group, { in_use: 0 });
    expect((await scene.strict.stats()).runs).toMatchObject({ peak: 1, rejected: 0 });
  });
});

it('a run whose end is told while it is about to be held holds nothing', async () => {
  const scene = await runScene('run-early', 1);
  await started(scene);
  const leases = await storedLeases(scene);
  const held = runsObject(scene).hold({ run: 'early', forMs: 60_000, leases });
  await runsObject(scene).end('early', 'success');
  expect(await held).toBe('no');
  expect(await storedIds(scene)).toEqual(['run_1']);
  await scene.strict.endRun('completed', 'run_1');
  await poll(scene, '/v1/responses/run_1');
  await untilStatus(scene.group, { in_use: 0 });
});

it('the end of a run reaches every hold of it that is still in progress', async () => {
  const scene = await runScene('run-twice', 1);
  await started(scene);
  const request = { forMs: 60_000, leases: await storedLeases(scene) };
  const hold = (run: string): Promise<string> => runsObject(scene).hold({ ...request, run });
  const unknown = [hold('twice'), hold('twice')];
  await runsObject(scene).end('twice', 'success');
  expect(await Promise.all(unknown)).toEqual(['no', 'no']);
  const known = hold('run_1');
  await runsObject(scene).end('run_1', 'success');
  expect(await known).toBe('no');
  expect(await storedIds(scene)).toEqual([]);
  await untilStatus(scene.group, { in_use: 0 });
  await scene.strict.endRun('completed', 'run_1');
});

it('an operator takes its slot away', async () => {
  const scene = await runScene('run-revoked', 1);
  await started(scene);
  const [lease] = await pool(scene.group).leases();
  expect(await pool(scene.group).revoke(lease?.id ?? '')).toBe(true);
  await renewNow(scene);
  await untilStatus(scene.group, { in_use: 0 });
  expect(await storedRuns(scene)).toBe(0);
  await scene.strict.endRun('completed');
});

it('a run holds its slots in all groups of its call, and in those of its key', async () => {
  const wide = { name: 'wide-runs', limits: { max_concurrency: 1 } };
  const scene = await runScene('run-several', 5, { others: [wide] });
  const id = await started(scene);
  await untilStatus('wide-runs', { in_use: 1 });
  await untilStatus(scene.group, { in_use: 1 });
  await renewNow(scene);
  await scene.strict.endRun('completed', id);
  await poll(scene, `/v1/responses/${id}`);
  await untilStatus('wide-runs', { in_use: 0 });
  await untilStatus(scene.group, { in_use: 0 });
  expect((await scene.strict.stats()).runs).toMatchObject({ inFlight: 0, rejected: 0 });
});

it('resets at any moment let no more run at once than the limit', async () => {
  const scene = await runScene('run-resets', 3);
  const all = Array.from({ length: 24 }, async (_, index) => {
    const starting = started(scene);
    if (index % 6 === 0) await resetPool(scene.group);
    const id = await starting;
    if (index % 4 === 0) await resetRuns(scene);
    if (index % 5 === 0) await resetPool(scene.group);
    // It may be reset for another one.
    await renewNow(scene).catch(() => {});
    await scene.strict.endRun('completed', id);
    // One that is told to an object as it is reset may get lost: its caller asks again, as callers do.
    await until(async () => {
      await poll(scene, `/v1/responses/${id}`);
      expect((await storedIds(scene)).includes(id)).toBe(false);
    });
  });
  await Promise.all(all);
  const { runs } = await scene.strict.stats();
  expect(runs).toMatchObject({ total: 24, rejected: 0, inFlight: 0 });
  expect(runs.peak).toBeLessThanOrEqual(3);
  // A release that was lost with an instance is made up for by the end of its lease.
  await passAwake(scene.group, LEASE_TTL_MS);
  await untilStatus(scene.group, { in_use: 0, unclaimed: 0 });
});

describe('an alarm that was due and never came', () => {
  const LATE_MS = 30_000;
  const alarmOf = (scene: RunScene): Promise<number | null> =>
    runInDurableObject(runsObject(scene) as never, (_: object, { storage }: DurableObjectState) =>
      storage.getAlarm(),
    );

  it('is set again by the next instance, and the leases stay alive', async () => {
    const scene = await runScene('run-stuck', 1);
    const run = await started(scene);
    passTime(LATE_MS);
    expect(await alarmOf(scene)).toBeLessThan(Date.now());
    await resetRuns(scene);
    expect(await alarmOf(scene)).toBeGreaterThanOrEqual(Date.now() - 5_000);
    await renewNow(scene);
    passTime(LATE_MS);
    await untilStatus(scene.group, { in_use: 1 });
    await scene.strict.endRun('completed', run);
    await poll(scene, `/v1/responses/${run}`);
    await untilStatus(scene.group, { in_use: 0 });
  });

  it('is set again by the end of another run', async () => {
    const scene = await runScene('run-stuck-awake', 2);
    const [ended, other] = [await started(scene), await started(scene)];
    passTime(LATE_MS);
    expect(await alarmOf(scene)).toBeLessThan(Date.now());
    await scene.strict.endRun('completed', ended);
    await poll(scene, `/v1/responses/${ended}`);
    await until(async () => expect(await alarmOf(scene)).toBeGreaterThan(Date.now() - 5_000));
    await scene.strict.endRun('completed', other);
    await poll(scene, `/v1/responses/${other}`);
    await untilStatus(scene.group, { in_use: 0 });
  });
});
