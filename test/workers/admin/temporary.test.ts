// Changes that go back by themselves: by the directory's alarm, once, and never over what somebody changed since.
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import { env, until } from '../support/worker.ts';
import { asAdmin, bodyOf } from './ask.ts';

const params = { name: 'a' };
const inMinutes = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();

const limit = async (max_concurrency: number, query: { until?: string; for_s?: number } = {}) =>
  bodyOf(
    await asAdmin('PATCH /groups/{name}', { params, query, body: { limits: { max_concurrency } } }),
  ).version;

const groupNow = async () => bodyOf(await asAdmin('GET /groups/{name}', { params }));
const limitNow = async () => (await groupNow()).limits.max_concurrency;
const temporaryNow = async (name = 'a') =>
  bodyOf(await asAdmin('GET /groups/{name}/status', { params: { name } })).temporary ?? [];
const lastEntry = async () =>
  bodyOf(await asAdmin('GET /audit', { query: { limit: 1 } })).entries[0];
const versionNow = async () => bodyOf(await asAdmin('GET /groups')).version;

/** Lets the time of everything that is for a while be over, as if the clock had gone on. */
async function letItEnd(): Promise<void> {
  await runInDurableObject(
    directoryOf(env) as never,
    (_instance, { storage }: DurableObjectState) => {
      storage.sql.exec('UPDATE temporary SET until = 1');
    },
  );
  // What is in memory of it goes with the instance; the next one reads the rows.
  await abortAllDurableObjects();
  await directoryOf(env).snapshot(null);
  await runDurableObjectAlarm(directoryOf(env) as never);
  // The alarm may have gone off by itself just before, and be under way.
  await until(async () => expect(await rowsLeft()).toBe(0));
}

async function rowsLeft(): Promise<number> {
  return runInDurableObject(
    directoryOf(env) as never,
    (_instance, { storage }: DurableObjectState) =>
      storage.sql.exec('SELECT * FROM temporary').toArray().length,
  );
}

beforeEach(async () => {
  bodyOf(await asAdmin('PUT /config', { body: { groups: [], keys: [], admin_keys: [] } }));
  bodyOf(
    await asAdmin('PUT /groups/{name}', {
      params,
      body: { match: { models: ['gpt-4o'] }, limits: { max_concurrency: 5, rpm: 60 } },
    }),
  );
  await letItEnd();
});

describe('a change for a while', () => {
  it('goes back by itself when its time is over, and says so', async () => {
    const log = vi.spyOn(console, 'log');
    const query = { for_s: 1 };
    const { group } = bodyOf(
      await asAdmin('PATCH /groups/{name}', {
        params,
        query,
        body: { limits: { max_concurrency: 8 } },
      }),
    );
    expect(group.limits.max_concurrency).toBe(8);
    await until(async () => expect(await limitNow()).toBe(5));
    expect(await temporaryNow()).toEqual([]);
    expect(await lastEntry()).toMatchObject({
      actor: 'headgate:directory',
      action: 'group a: temporary change ended, reverted limits.max_concurrency',
      changes: [{ path: 'groups[a].limits.max_concurrency', from: 8, to: 5 }],
    });
    const lines = log.mock.calls.map(([line]) => String(line));
    expect(lines.filter((line) => line.includes('temporary_ended'))).toHaveLength(1);
    log.mockRestore();
  });

  it('goes back also if the alarm for it was lost', async () => {
    await limit(8, { for_s: 1 });
    await runInDurableObject(directoryOf(env) as never, (_instance, { storage }) =>
      storage.deleteAlarm(),
    );
    // Nothing else wakes the directory but the isolates that ask for its configuration.
    await until(async () => {
      await directoryOf(env).snapshot(null);
      expect(await rowsLeft()).toBe(0);
    });
    expect(await limitNow()).toBe(5);
  });

  it('is told of with its end, and by whom it was made', async () => {
    const at = inMinutes(30);
    await limit(8, { until: at });
    expect(await temporaryNow()).toEqual([
      { field: 'limits.max_concurrency', from: 5, to: 8, until: at, actor: 'admin-token' },
    ]);
    expect((await lastEntry())?.action).toBe(`group a: patch until ${at}`);
  });

  it('goes back once, also past a reset, and leaves nothing behind', async () => {
    const version = await limit(8, { until: inMinutes(30) });
    await letItEnd();
    expect(await limitNow()).toBe(5);
    await abortAllDurableObjects();
    await runDurableObjectAlarm(directoryOf(env) as never);
    expect(await versionNow()).toBe(version + 1);
  });

  it('takes along nothing that was changed meanwhile', async () => {
    await limit(8, { until: inMinutes(30) });
    bodyOf(await asAdmin('PATCH /groups/{name}', { params, body: { limits: { rpm: 90 } } }));
    await letItEnd();
    expect((await groupNow()).limits).toMatchObject({ max_concurrency: 5, rpm: 90 });
  });

  it('does not go back where somebody set another value since, not even to the same again', async () => {
    await limit(8, { until: inMinutes(30) });
    await limit(9);
    expect(await temporaryNow()).toEqual([]);
    await limit(8);
    const before = await versionNow();
    await letItEnd();
    expect(await limitNow()).toBe(8);
    expect(await lastEntry()).toMatchObject({
      actor: 'headgate:directory',
      version: before,
      action:
        'group a: temporary change ended, not reverted: limits.max_concurrency: it was changed since',
      changes: [],
    });
  });

  it('made a second time goes back to what was before the first, at the second end', async () => {
    await limit(8, { until: inMinutes(30) });
    const at = inMinutes(60);
    await limit(10, { until: at });
    expect(await temporaryNow()).toMatchObject([{ from: 5, to: 10, until: at }]);
    await letItEnd();
    expect(await limitNow()).toBe(5);
  });

  it('is extended by the same value with another end, and kept by it without any', async () => {
    const version = await limit(8, { until: inMinutes(30) });
    const at = inMinutes(60);
    expect(await limit(8, { until: at })).toBe(version);
    expect(await temporaryNow()).toMatchObject([{ from: 5, to: 8, until: at }]);
    expect(await limit(8)).toBe(version);
    expect(await temporaryNow()).toEqual([]);
    await letItEnd();
    expect(await limitNow()).toBe(8);
  });

  it('ends early with the value of before', async () => {
    await limit(8, { until: inMinutes(30) });
    const version = await limit(5);
    expect(await temporaryNow()).toEqual([]);
    await letItEnd();
    expect([await limitNow(), await versionNow()]).toEqual([5, version]);
  });

  it('of a group that is deleted and made anew does not touch the new one', async () => {
    await limit(8, { until: inMinutes(30) });
    bodyOf(await asAdmin('DELETE /groups/{name}', { params }));
    bodyOf(
      await asAdmin('PUT /groups/{name}', {
        params,
        body: { match: { models: ['gpt-4o'] }, limits: { max_concurrency: 8 } },
      }),
    );
    await letItEnd();
    expect(await limitNow()).toBe(8);
    expect((await lastEntry())?.action).toContain('the group was deleted');
  });

  it('that could not hold any more does not go back, and says why', async () => {
    bodyOf(await asAdmin('PUT /upstreams/{id}', { params: { id: 'mine' }, body: MINE }));
    bodyOf(
      await asAdmin('PATCH /groups/{name}', { params, body: { match: { upstreams: ['mine'] } } }),
    );
    const match = { upstreams: [] };
    bodyOf(
      await asAdmin('PATCH /groups/{name}', { params, query: { for_s: 900 }, body: { match } }),
    );
    bodyOf(await asAdmin('DELETE /upstreams/{id}', { params: { id: 'mine' } }));
    await letItEnd();
    expect((await groupNow()).match.upstreams).toEqual([]);
    expect((await lastEntry())?.action).toMatch(/not reverted: match\.upstreams.*mine/);
  });

  it('may be of several fields, each of which goes back by itself', async () => {
    const body = {
      limits: { max_concurrency: 8, rpm: 90 },
      fairness: { weights: { 'team.a': 2 } },
    };
    bodyOf(await asAdmin('PATCH /groups/{name}', { params, query: { for_s: 900 }, body }));
    bodyOf(await asAdmin('PATCH /groups/{name}', { params, body: { limits: { rpm: 70 } } }));
    await letItEnd();
    expect(await groupNow()).toMatchObject({
      limits: { max_concurrency: 5, rpm: 70 },
      fairness: { weights: {} },
    });
    expect((await lastEntry())?.action).toContain('not reverted: limits.rpm: it was changed since');
  });

  it.each([
    [{ until: '2020-01-01T00:00:00Z' }, 'until', 'in the future'],
    [{ until: 'tomorrow' }, 'until', 'expected a UTC time'],
    [{ until: new Date(Date.now() + 40 * 86_400_000).toISOString() }, 'until', 'within 31 days'],
    [{ for_s: 0 }, 'for_s', '1'],
    [{ for_s: 5, until: new Date(Date.now() + 60_000).toISOString() }, 'for_s', 'combined'],
  ])('has an end that can be: %j is refused', async (query, path, says) => {
    const answer = await asAdmin('PATCH /groups/{name}', { params, query, body: { paused: true } });
    expect(answer).toMatchObject({
      status: 422,
      problem: { errors: [{ path, message: expect.stringContaining(says) }] },
    });
  });

  it('is not of a group that there was not', async () => {
    const made = { params: { name: 'new' }, query: { for_s: 60 }, body: {} };
    expect(await asAdmin('PUT /groups/{name}', made)).toMatchObject({
      status: 422,
      problem: { errors: [{ path: 'until' }] },
    });
  });
});

describe('a way back', () => {
  const undo = async (version: number) =>
    bodyOf(await asAdmin('POST /config/rollback', { body: { undo: version } })).warnings;

  it('brings the end back with the value, past a reset too', async () => {
    const at = inMinutes(30);
    await limit(8, { until: at });
    const later = await limit(12);
    await abortAllDurableObjects();
    expect(await undo(later)).toEqual([
      `a: limits.max_concurrency reverts automatically at ${at}, as it did then.`,
    ]);
    expect(await limitNow()).toBe(8);
    expect(await temporaryNow()).toMatchObject([{ from: 5, to: 8, until: at }]);
    await letItEnd();
    expect(await limitNow()).toBe(5);
  });

  it('from a second one leads to the first, with its end as it was moved', async () => {
    await limit(8, { until: inMinutes(30) });
    const at = inMinutes(40);
    await limit(8, { until: at });
    await undo(await limit(10, { until: inMinutes(60) }));
    expect(await temporaryNow()).toMatchObject([{ from: 5, to: 8, until: at }]);
  });

  it('from a resume, or a deletion, pauses no longer than it was', async () => {
    const at = inMinutes(30);
    bodyOf(await asAdmin('POST /groups/{name}/pause', { params, body: { until: at } }));
    await undo(bodyOf(await asAdmin('POST /groups/{name}/resume', { params })).version);
    expect(await temporaryNow()).toMatchObject([{ field: 'paused', until: at }]);
    await undo(bodyOf(await asAdmin('DELETE /groups/{name}', { params })).version);
    expect(await temporaryNow()).toMatchObject([{ field: 'paused', until: at }]);
    await letItEnd();
    expect((await groupNow()).paused).toBe(false);
  });

  it('to what is over stays, and says so before', async () => {
    const then = await limit(8, { for_s: 1 });
    await until(async () => expect(await limitNow()).toBe(5));
    const body = { version: then };
    const preview = { query: { as: 'rollback' }, body: body as never } as const;
    const over = [expect.stringContaining('That time has passed, so the value is now permanent.')];
    expect(bodyOf(await asAdmin('POST /config/preview', preview)).warnings).toEqual(over);
    expect(bodyOf(await asAdmin('POST /config/rollback', { body })).warnings).toEqual(over);
    expect([await limitNow(), await temporaryNow()]).toEqual([8, []]);
  });
});

describe('a pause with an end', () => {
  it('ends by itself, and calls go on', async () => {
    const { group } = bodyOf(
      await asAdmin('POST /groups/{name}/pause', { params, body: { for_s: 1 } }),
    );
    expect(group).toMatchObject({ paused: true });
    await until(async () => expect((await groupNow()).paused).toBe(false));
  });

  it('of an automatic group does, too', async () => {
    const name = 'auto:openai';
    const at = inMinutes(20);
    bodyOf(await asAdmin('POST /groups/{name}/pause', { params: { name }, body: { until: at } }));
    expect(await temporaryNow(name)).toEqual([
      { field: 'paused', from: false, to: true, until: at, actor: 'admin-token' },
    ]);
    await letItEnd();
    expect(bodyOf(await asAdmin('GET /config')).auto_groups).toEqual([]);
  });

  it('is ended early by resuming, and the next pause has no end', async () => {
    bodyOf(await asAdmin('POST /groups/{name}/pause', { params, body: { for_s: 900 } }));
    bodyOf(await asAdmin('POST /groups/{name}/resume', { params }));
    expect(await temporaryNow()).toEqual([]);
    bodyOf(await asAdmin('POST /groups/{name}/pause', { params }));
    await letItEnd();
    expect((await groupNow()).paused).toBe(true);
  });

  it('is given to a group that is paused already, and taken from it', async () => {
    bodyOf(await asAdmin('POST /groups/{name}/pause', { params }));
    bodyOf(await asAdmin('POST /groups/{name}/pause', { params, body: { for_s: 900 } }));
    expect(await temporaryNow()).toMatchObject([{ field: 'paused', from: false, to: true }]);
    bodyOf(await asAdmin('POST /groups/{name}/pause', { params }));
    expect(await temporaryNow()).toEqual([]);
    bodyOf(await asAdmin('POST /groups/{name}/pause', { params, body: { for_s: 900 } }));
    await letItEnd();
    expect((await groupNow()).paused).toBe(false);
  });

  it('and a limit for a while end each at their time', async () => {
    bodyOf(await asAdmin('POST /groups/{name}/drain', { params, body: { for_s: 1 } }));
    await limit(8, { until: inMinutes(30) });
    await until(async () => expect((await groupNow()).draining).toBe(false));
    expect(await limitNow()).toBe(8);
    expect(await temporaryNow()).toMatchObject([{ field: 'limits.max_concurrency' }]);
  });
});

const MINE = { base_url: 'https://llm.example.com', models: ['llama-*'] };
