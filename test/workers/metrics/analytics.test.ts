/** One data point for each call that has ended, through the binding that the runtime gives. */
import { afterEach, beforeEach, expect, it, vi, type MockInstance } from 'vitest';
import type { AnalyticsDataset } from '../../../src/env.ts';
import { NO_COOLDOWN } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { call, chat, configure, env, open, until } from '../support/worker.ts';

type AnalyticsPoint = Parameters<AnalyticsDataset['writeDataPoint']>[0];

const PATH = '/practice/v1/chat/completions';
const init = { headers: { authorization: 'Bearer sk-never-in-a-point' } };

let strict: Strict;
let written: MockInstance<AnalyticsDataset['writeDataPoint']>;

beforeEach(async () => {
  strict = await strictScope('analysed', { outputTokens: 7, inputTokens: 11 });
  await configure({
    upstreams: [
      {
        id: 'practice',
        base_url: strict.url,
        dialect: 'openai',
        inject_usage: true,
        prices: { '*': { input: 1_000, output: 1_000 } },
      },
    ],
    groups: [
      {
        name: 'analysed',
        match: { upstreams: ['practice'] },
        limits: { max_concurrency: 1, max_weight: 1 },
        track_usage: 'always',
        holds: NO_COOLDOWN,
      },
    ],
  });
  // The dataset of the runtime keeps nothing that could be read, so it is watched while it is written to.
  const dataset = Object.getPrototypeOf(env.ANALYTICS) as AnalyticsDataset;
  written = vi.spyOn(dataset, 'writeDataPoint');
});

afterEach(() => written.mockRestore());

function points(): readonly AnalyticsPoint[] {
  return written.mock.calls.map(([point]) => point);
}

it('tells of a call that ended well: where, how long, what it used and cost', async () => {
  const response = await chat(PATH, 'analysed', init);
  await response.arrayBuffer();
  await until(() => expect(points()).toHaveLength(1));
  const [point] = points();
  expect(point?.indexes).toEqual(['analysed']);
  const [tenant = ''] = point?.blobs.slice(3) ?? [];
  expect(tenant).toMatch(/^fp_/);
  expect(point?.blobs).toEqual([
    'analysed',
    'practice',
    'gpt-4o-mini',
    tenant,
    'normal',
    'success',
    '',
    '2xx',
    '',
  ]);
  const [waited, held, ...used] = point?.doubles ?? [];
  expect(waited).toBeGreaterThanOrEqual(0);
  expect(held).toBeGreaterThanOrEqual(0);
  expect(used).toEqual([11, 7, 0.018]);
  expect(JSON.stringify(points())).not.toContain('sk-never');
});

it('tells of calls that waited, were refused by the group, and by the upstream', async () => {
  await strict.configure({ firstByteDelayMs: 300 });
  const first = open(PATH, 'first', init);
  await until(async () => expect((await strict.stats()).inFlight).toBe(1));
  const second = open(PATH, 'second', init);
  const headers = { ...init.headers, 'headgate-max-wait': '0' };
  const busy = await call(PATH, { json: { model: 'gpt-4o', messages: [] }, headers });
  expect(busy.status).toBe(429);
  await Promise.all([first.end, second.end]);
  await strict.configure({ firstByteDelayMs: 0, fail: 'quota' });
  const refused = await chat(PATH, 'refused', init);
  expect(refused.status).toBe(429);
  await refused.arrayBuffer();
  await until(() => expect(points()).toHaveLength(4));
  const brief = points().map(({ blobs }) => blobs.slice(5).join(' '));
  expect(brief).toEqual([
    'rejected busy  ',
    'success  2xx ',
    'success  2xx ',
    'refused quota 4xx ',
  ]);
  const waited = points().map(({ doubles }) => doubles[0] ?? 0);
  expect(waited[2]).toBeGreaterThan(50);
});

it('is in nobody’s way: a dataset that fails costs no call', async () => {
  written.mockImplementation(() => {
    throw new TypeError('too many data points');
  });
  for (const label of ['one', 'two']) {
    const response = await chat(PATH, label, init);
    expect([response.status, (await response.text()).includes('[DONE]')]).toEqual([200, true]);
  }
  const headers = { ...init.headers, 'headgate-weight': '2' };
  const wide = await chat(PATH, 'wide', { headers });
  expect([wide.status, wide.headers.get('headgate-reason')]).toEqual([413, 'never_fits']);
  await until(() => expect(written).toHaveBeenCalledTimes(3));
});

it('has bounded texts, whatever a caller writes', async () => {
  const json = { model: 'm'.repeat(250), messages: [] };
  const response = await call(PATH, { json, ...init });
  await response.arrayBuffer();
  await until(() => expect(points().length).toBeGreaterThan(0));
  expect(points()[0]?.blobs[2]).toHaveLength(200);
});
