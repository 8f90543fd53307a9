/** History, decisions and warnings of a group over the admin API, with real calls through the Worker. */
import { beforeAll, describe, expect, it } from 'vitest';
import { decisionsSchema, warningsSchema } from '../../../src/admin/resources/decisions.ts';
import { historySchema } from '../../../src/admin/resources/history.ts';
import { SERVED } from '../../../src/core/words/signal.ts';
import { directoryOf } from '../../../src/env.ts';
import { NO_COOLDOWN, pool, request, take, untilStatus } from '../support/pool.ts';
import { strictScope } from '../support/strict.ts';
import { admin, change, chat, configure, env, until } from '../support/worker.ts';

beforeAll(async () => {
  const strict = await strictScope('explained', { limit: 1, firstByteDelayMs: 300 });
  await configure({
    upstreams: [{ id: 'practice', base_url: strict.url, dialect: 'openai' }],
    groups: [
      {
        name: 'practice',
        match: { upstreams: ['practice'], models: ['gpt-*'] },
        limits: { max_concurrency: 1 },
        holds: NO_COOLDOWN,
      },
      {
        name: 'split',
        match: { upstreams: ['openai'] },
        partition_by: ['caller'],
        limits: { max_concurrency: 2 },
      },
      { name: 'unused', match: { upstreams: ['groq'] }, partition_by: ['caller'] },
    ],
  });
  for (const partition of ['one', 'two']) {
    await directoryOf(env).list({ group: 'split', partition });
    const asked = request('split', `t-${partition}`, { partition, caller: partition });
    const answer = await pool(`split#${partition}`).acquire(asked);
    if (answer.kind !== 'granted') throw new Error(answer.kind);
    await answer.lease.report({ ...SERVED, kind: 'quota' }, false);
    await answer.lease.release('refused', 429);
  }
});

const credentials = { headers: { authorization: 'Bearer sk-practice' } };

describe('decisions', () => {
  it('explain a call by the header that its answer carries', async () => {
    // Another call holds the only slot until this one waits.
    const { lease: held } = await take('practice', 'first');
    const asking = chat('/practice/v1/chat/completions', 'second', credentials);
    await untilStatus('practice', { queued: 1 });
    await held.release('success', 200);
    held[Symbol.dispose]();
    const second = await asking;
    await second.arrayBuffer();
    const lease = encodeURIComponent(second.headers.get('headgate-lease') ?? '');
    await until(async () => {
      const { json, status } = await admin('GET', `/groups/practice/decisions?lease=${lease}`);
      expect(status).toBe(200);
      const { decisions } = decisionsSchema.parse(json);
      expect(decisions).toHaveLength(1);
      expect(decisions[0]).toMatchObject({
        partition: null,
        upstream: 'practice',
        model: 'gpt-4o-mini',
        outcome: 'granted',
        waited_for: 'slots',
        upstream_status: 200,
        ended: 'success',
      });
      expect(decisions[0]?.waited_ms).toBeGreaterThan(0);
    });
  });

  it('of all partitions stand in one list, the latest first', async () => {
    const { json } = await admin('GET', '/groups/split/decisions?limit=5&outcome=granted');
    const { decisions } = decisionsSchema.parse(json);
    expect(decisions.map(({ partition }) => partition)).toEqual(['two', 'one']);
    const times = decisions.map(({ decided_at }) => decided_at);
    expect(times).toEqual(times.toSorted().toReversed());
  });

  it.each([
    ['limit=0', 'limit'],
    ['limit=501', 'limit'],
    ['outcome=lost', 'outcome'],
    ['from=yesterday', 'from'],
    ['what=ever', 'what'],
  ])('cannot be asked for with %s', async (query, path) => {
    const { status, json } = await admin('GET', `/groups/split/decisions?${query}`);
    expect([status, json.errors[0].path]).toEqual([422, path]);
  });
});

describe('history', () => {
  it('adds up the pools of a group', async () => {
    const { status, json } = await admin('GET', '/groups/split/history');
    expect(status).toBe(200);
    const { points, step_s } = historySchema.parse(json);
    expect(step_s).toBe(60);
    expect(points.reduce((sum, point) => sum + point.granted, 0)).toBe(2);
    expect(points.at(-1)).toMatchObject({ limit: 4, refusals: { quota: 2 } });
  });

  it('tells of one partition alone', async () => {
    const { json } = await admin('GET', '/groups/split/history?partition=one&step=300');
    const { points, step_s } = historySchema.parse(json);
    expect([step_s, points.reduce((sum, point) => sum + point.granted, 0)]).toEqual([300, 1]);
  });

  it('of a split group that nobody has called is empty', async () => {
    const { status, json } = await admin('GET', '/groups/unused/history');
    expect([status, historySchema.parse(json).points]).toEqual([200, []]);
  });

  it('takes longer steps for longer times', async () => {
    const ago = (days: number) => Date.now() - days * 86_400_000;
    const steps = await Promise.all(
      [0.5, 3, 20].map(async (days) => {
        const { json } = await admin('GET', `/groups/split/history?from=${ago(days)}`);
        return historySchema.parse(json).step_s;
      }),
    );
    expect(steps).toEqual([60, 900, 3_600]);
  });

  it.each([
    ['step=59', 'step'],
    ['step=90', 'step'],
    ['from=never', 'from'],
    ['from=2000000000000', 'from'],
    ['from=0&step=60', 'step'],
    ['until=now', 'until'],
  ])('cannot be asked for with %s', async (query, path) => {
    const answer = await admin('GET', `/groups/split/history?${query}`);
    expect([answer.status, answer.json.errors[0].path]).toEqual([422, path]);
    expect(answer.json.errors[0].message).not.toContain('Invalid');
  });

  it.each([
    ['/groups/none/history', 404],
    ['/groups/split/history?partition=three', 404],
    ['/groups/none/decisions', 404],
    ['/groups/none/warnings', 404],
  ])('%s is not there', async (path, status) => {
    expect((await admin('GET', path)).status).toBe(status);
  });

  it.each(['history', 'decisions', 'warnings'])('%s can only be read', async (what) => {
    expect((await admin('DELETE', `/groups/split/${what}`)).status).toBe(405);
  });
});

it('warnings of all partitions stand in one list', async () => {
  const { json } = await admin('GET', '/groups/split/warnings');
  const { warnings } = warningsSchema.parse(json);
  expect(warnings.map(({ kind, partition }) => [kind, partition])).toEqual([
    ['quota_exhausted', 'two'],
    ['quota_exhausted', 'one'],
  ]);
});

describe('time before a group existed', () => {
  it('is a gap, and no zeros: in the history, and in the last hour of the status', async () => {
    const madeFrom = Date.now();
    await change('PUT', '/groups/young', { limits: { max_concurrency: 1 } });
    const { lease } = await take('young', 'first');
    await lease.release('success', 200);
    lease[Symbol.dispose]();
    const from = madeFrom - 600_000;
    const { json } = await admin('GET', `/groups/young/history?from=${from}`);
    const { since, gaps, points } = historySchema.parse(json);
    expect(gaps).toEqual([
      { from: new Date(from).toISOString(), to: since, why: 'before', partition: null },
    ]);
    // The point of its first minute begins before the group does.
    expect(Date.parse(since ?? '')).toBeGreaterThan(madeFrom - 60_000);
    expect(Date.parse(since ?? '')).toBeLessThanOrEqual(Date.now());
    // One point, or two if a minute ended meanwhile.
    expect(points.reduce((sum, { granted }) => sum + granted, 0)).toBe(1);
    expect(points.length).toBeLessThanOrEqual(2);
    const status = (await admin('GET', '/groups/young/status')).json;
    const { refused } = status.last_hour.steps;
    expect(refused[0]).toBeNull();
    expect(refused.at(-1)).toBe(0);
    const later = await admin('GET', `/groups/young/history?from=${Date.parse(since ?? '')}`);
    expect(later.json.gaps).toEqual([]);
  });
});
