// Loads what version 1 stored, in the objects of this build. The fixture was written by real objects: two groups with
// calls on two days, an open lease, a background run, a refusal that paused a model, and three versions.
import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { beforeAll, expect, it, vi } from 'vitest';
import fixture from '../../fixtures/storage-1.json';
import { pool } from '../support/pool.ts';
import { admin, call, change, env, until } from '../support/worker.ts';

type StoredValue = string | number | null | { readonly base64: string };

interface StoredObject {
  readonly schema: readonly string[];
  readonly rows: Readonly<Record<string, readonly Readonly<Record<string, StoredValue>>[]>>;
}

const KEY = { 'headgate-key': fixture.key };

beforeAll(async () => {
  vi.useFakeTimers({ now: fixture.at, toFake: ['Date'] });
  for (const [at, stored] of Object.entries(
    fixture.objects as unknown as Record<string, StoredObject>,
  )) {
    const [namespace = '', name = ''] = at.split(' ');
    await load(namespace as 'GROUPS' | 'DIRECTORY' | 'RUNS', name, stored);
  }
  return () => vi.useRealTimers();
});

/** Replaces all tables of an object, and ends its instance. */
async function load(
  namespace: 'GROUPS' | 'DIRECTORY' | 'RUNS',
  name: string,
  { schema, rows }: StoredObject,
): Promise<void> {
  const reset = runInDurableObject(
    env[namespace]?.getByName(name) as never,
    async (_: object, state: DurableObjectState) => {
      const { sql } = state.storage;
      for (const table of Object.keys(rows)) sql.exec(`DROP TABLE IF EXISTS ${table}`);
      for (const statement of schema) sql.exec(statement);
      for (const [table, all] of Object.entries(rows)) {
        for (const row of all) {
          const marks = Object.keys(row).map(() => '?');
          const columns = Object.keys(row).map((column) => `"${column}"`);
          sql.exec(
            `INSERT INTO ${table} (${columns.join()}) VALUES (${marks.join()})`,
            ...Object.values(row).map(valueOf),
          );
        }
      }
      await state.storage.sync();
      state.abort('loads the fixture');
    },
  );
  await reset.catch(() => undefined);
}

function valueOf(value: StoredValue): SqlStorageValue {
  if (value === null || typeof value !== 'object') return value;
  return Uint8Array.from(atob(value.base64), (char) => char.charCodeAt(0)).buffer;
}

it('keeps the configuration, its versions, and what operators did', async () => {
  const config = await admin('GET', '/config');
  expect(config.json).toMatchObject({
    teams: [{ id: 't-1' }],
    keys: [{ id: 'k-1', team: 't-1' }],
    groups: [{ name: 'kept', paused: true, limits: { max_concurrency: 5 } }, { name: 'shared' }],
  });
  const { json: versions } = await admin('GET', '/config/versions');
  expect(versions.versions.map(({ version }: { version: number }) => version)).toEqual([
    3, 2, 1, 0,
  ]);
  const { json: audit } = await admin('GET', '/audit');
  expect(audit.entries).toMatchObject([
    { version: 3, action: 'group kept: pause until 2100-01-15T13:00:15.000Z' },
    { version: 2, changes: [{ path: 'groups[kept].limits.max_concurrency', from: 4, to: 5 }] },
    { version: 1, action: 'config: import' },
  ]);
  const { json: warnings } = await admin('GET', '/warnings');
  expect(warnings.warnings).toMatchObject([{ kind: 'pause_long', group: 'kept' }]);
});

it('keeps slots until their holders return, and what was used and learned', async () => {
  expect(await pool('kept').status()).toMatchObject({
    in_use: 0,
    unclaimed: 2,
    unclaimed_until: '2100-01-15T12:01:00.000Z',
    limit: { configured: 5, effective: 5 },
    paused_until: expect.stringMatching(/^2100-01-15T13:00:10/) as string,
    about: { model: 'm-1' },
    rates: { rpd: { limit: 1_000, left: 939 } },
    spend: { day_usd: expect.closeTo(0.7) as number, month_usd: expect.closeTo(33.6) as number },
    upstreams: [{ id: 'plain', last_refusals: [{ kind: 'long_window', status: 429 }] }],
  });
  expect(await pool('shared').status()).toMatchObject({ members: [{ id: 'm-1' }, { id: 'm-2' }] });
  // The lease is renewed by its token, and that of the run by the object that holds it.
  const renewed = await call(`/leases/${fixture.lease}`, { method: 'PUT', headers: KEY });
  expect(renewed.status).toBe(200);
  expect(await runDurableObjectAlarm(env.RUNS?.getByName('plain') as never)).toBe(true);
  await until(async () => {
    expect(await pool('kept').status()).toMatchObject({ in_use: 2, unclaimed: 0 });
  });
});

it('keeps history, costs and the log of calls', async () => {
  const range = 'from=2100-01-14T00:00:00Z&to=2100-01-15T12:00:15Z';
  const { json: history } = await admin('GET', `/groups/kept/history?${range}`);
  expect(history.points[0]).toMatchObject({ granted: 47, input_tokens: 94, output_tokens: 235 });
  expect(history.markers.map(({ kind }: { kind: string }) => kind)).toContain('paused');
  const { json: found } = await admin('GET', `/calls?group=kept&${range}`);
  expect(found.calls[0]).toMatchObject({ key: 'k-1', model: 'm-1', outcome: 'success', sent: 1 });
  const { json: costs } = await admin('GET', '/costs?period=month&by=key');
  expect(costs.rows).toMatchObject([
    { name: 'k-1', calls: 48, usd: expect.closeTo(33.6) as number },
  ]);
});

it('undoes a change, and lets the key of a team in', async () => {
  await change('POST', '/config/rollback', { version: 1 });
  const { json } = await admin('GET', '/groups/kept');
  expect(json).toMatchObject({ paused: false, limits: { max_concurrency: 4 } });
  const messages = [{ role: 'user', content: 'hello' }];
  const chat = (headers: Record<string, string>) =>
    call('/plain/v1/chat/completions', {
      json: { model: 'm-1', max_tokens: 2, messages },
      headers,
    });
  const known = await chat({ ...KEY, 'headgate-max-wait': '0' });
  expect(known.headers.get('headgate-reason')).toBe('upstream_limited');
  const unknown = await chat({ 'headgate-key': 'hg_another' });
  expect(unknown.headers.get('headgate-reason')).toBe('key_invalid');
});
