// Which upstream made what a caller asks for by its id: how long that is known, how much of it, and where it is not kept.
import { runInDurableObject } from 'cloudflare:test';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { MadeStore } from '../../../src/runs/store.ts';
import { strictScope } from '../support/strict.ts';
import { admin, call, configure, env, until } from '../support/worker.ts';

const DAY_MS = 24 * 3_600_000;
const NOW = 1_800_000_000_000;

function inStore<Value>(name: string, run: (sql: SqlStorage) => Value): Promise<Value> {
  return runInDurableObject(objectOf(name), (_, { storage }) => run(storage.sql));
}

// oxlint-disable-next-line typescript/no-explicit-any -- the test pool wants a stub of its own types
function objectOf(name: string): any {
  if (env.RUNS === undefined) throw new Error('no runs');
  return env.RUNS.getByName(name);
}

const made = (caller: string, ...ids: string[]) => ({ caller, ids, upstream: `up-${caller}` });

it('is known for 30 days', async () => {
  await inStore('made:days', (sql) => {
    const store = new MadeStore(sql);
    store.put(made('a', 'one', 'two'), NOW);
    expect(store.find(['none', 'two'], NOW + 29 * DAY_MS)).toBe('up-a');
    expect(store.find(['two'], NOW + 31 * DAY_MS)).toBe(null);
    store.put({ ...made('a', 'two'), upstream: 'moved' }, NOW);
    expect(store.find(['two'], NOW)).toBe('moved');
  });
});

it('is bounded for each caller, so that one does not displace what others made', async () => {
  await inStore('made:bounds', (sql) => {
    const store = new MadeStore(sql, { caller: 10, instance: 25, pruneEvery: 5 });
    store.put(made('quiet', 'mine'), NOW);
    for (let at = 1; at <= 100; at += 1) store.put(made('busy', `busy-${at}`), NOW + at);
    expect(store.find(['mine'], NOW)).toBe('up-quiet');
    expect(store.find(['busy-100'], NOW)).toBe('up-busy');
    expect(store.find(['busy-50'], NOW)).toBe(null);
    for (let at = 1; at <= 100; at += 1) store.put(made(`c-${at}`, `other-${at}`), NOW + at);
    const [row] = sql.exec<{ count: number }>('SELECT count(*) AS count FROM made').toArray();
    expect(row?.count).toBeLessThanOrEqual(30);
  });
});

it('is dropped when its time is over', async () => {
  await inStore('made:over', (sql) => {
    const store = new MadeStore(sql, { caller: 10, instance: 25, pruneEvery: 1 });
    store.put(made('a', 'old'), NOW);
    store.put(made('a', 'new'), NOW + 31 * DAY_MS);
    const rows = sql.exec<{ id: string }>('SELECT id FROM made').toArray();
    expect(rows.map(({ id }) => id)).toEqual(['new']);
  });
});

it('is kept under hashes, and only where the upstream is not found without it', async () => {
  const strict = await strictScope('made', { runs: true });
  const key = 'hg_made-key';
  const { json } = await admin('POST', '/fingerprint', { key });
  const auth = { secret: 'UPSTREAM_TEST_KEY' };
  const upstreams = ['one', 'two'].map((id) => ({ id, base_url: strict.url, auth }));
  const keys = [{ id: 'k', hash: json.hash as string, allow: ['responses'] }];
  const headers = { authorization: `Bearer ${key}` };
  const start = async (): Promise<string> => {
    const asked = { model: 'one/gpt-5', background: true, input: 'x' };
    const answer = await call('/v1/responses', { json: asked, headers });
    return (await answer.json<{ id: string }>()).id;
  };
  const rows = async (): Promise<string[]> => {
    const all = await Promise.all(
      Array.from({ length: 16 }, (_, at) =>
        inStore(`made:k${at}`, (sql) => {
          new MadeStore(sql).find([], NOW);
          return sql.exec<{ id: string; caller: string }>('SELECT id, caller FROM made').toArray();
        }),
      ),
    );
    return all.flat().map(({ id, caller }) => `${id} ${caller}`);
  };
  await configure({ upstreams: upstreams.slice(0, 1), keys });
  let before: string[] = [];
  // On a busy machine, the first call may still be routed by the configuration of the test before.
  await until(async () => {
    before = await rows();
    const alone = await start();
    expect((await call(`/v1/responses/${alone}`, { headers })).status).toBe(200);
    expect(await rows()).toEqual(before);
  });
  await configure({ upstreams, keys });
  const noted = await start();
  const added = async () => (await rows()).filter((row) => !before.includes(row));
  await until(async () => expect(await added()).toHaveLength(1));
  expect((await added()).join()).toMatch(/^m:[0-9a-f]{24} m:[0-9a-f]{24}$/);
  expect((await call(`/v1/responses/${noted}`, { headers })).status).toBe(200);
  await strict.endRun('completed');
});

it('is pruned though no instance lives for many writes', async () => {
  await inStore('made:short-lives', (sql) => {
    const bounds = { caller: 10, instance: 25, pruneEvery: 8 };
    for (let at = 1; at <= 1_000; at += 1) {
      new MadeStore(sql, bounds).put(made('a', `id-${at}`), NOW + at);
    }
    const [row] = sql.exec<{ count: number }>('SELECT count(*) AS count FROM made').toArray();
    expect(row?.count).toBeLessThan(300);
  });
});

describe('where the record of ids does not answer, or names a removed upstream', () => {
  const key = 'hg_made-lost';
  const headers = { authorization: `Bearer ${key}` };

  async function configureWith(ids: readonly string[], url: string): Promise<void> {
    const { json } = await admin('POST', '/fingerprint', { key });
    const auth = { secret: 'UPSTREAM_TEST_KEY' };
    await configure({
      upstreams: ids.map((id) => ({ id, base_url: url, auth })),
      default_upstream: ids[0] ?? null,
      keys: [{ id: 'lost', hash: json.hash as string, allow: ['responses'] }],
    });
  }

  afterEach(() => vi.restoreAllMocks());

  it('refuses what it cannot look up for now, rather than have another upstream not find it', async () => {
    const strict = await strictScope('made-lost', { runs: true });
    await configureWith(['first', 'second'], strict.url);
    const spied = vi.spyOn(MadeStore.prototype, 'find').mockImplementation(() => {
      throw new Error('lost');
    });
    const answer = await call('/v1/responses/resp_elsewhere', { headers, method: 'DELETE' });
    expect(spied).toHaveBeenCalled();
    expect(answer.status).toBe(503);
    expect(answer.headers.get('headgate-reason')).toBe('limiter_unavailable');
    expect((await strict.stats()).uncounted).toBe(0);
  });

  it('names the removed upstream that made it', async () => {
    const strict = await strictScope('made-removed', { runs: true });
    await configureWith(['first', 'second', 'third'], strict.url);
    const asked = { model: 'third/gpt-5', background: true, input: 'x' };
    const started = await call('/v1/responses', { json: asked, headers });
    const { id } = await started.json<{ id: string }>();
    await strict.endRun('completed');
    await configureWith(['first', 'second'], strict.url);
    const answer = await call(`/v1/responses/${id}`, { headers });
    expect(answer.status).toBe(404);
    expect(await answer.text()).toContain('Upstream `third`, which created');
  });
});
