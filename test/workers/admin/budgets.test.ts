// Corrections of the spend of budgets of groups, keys and teams, while calls are settled and across resets.
import { runInDurableObject } from 'cloudflare:test';
import { afterAll, expect, it } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import { gatewayKeyHash } from '../../../src/runtime/secrets.ts';
import { del, group, leased, limitTo, post } from '../leases/scene.ts';
import { crashPool, nothingLeaks, pool } from '../support/pool.ts';
import { admin, env } from '../support/worker.ts';

afterAll(nothingLeaks);

const KEY = { 'headgate-key': 'hg_spender-000000000000000000000' };
const WANTED = { upstream: 'up', model: 'm-1' };

/** Price in USD of a million input tokens. */
const COST = 1;
const USAGE = { input_tokens: 1_000_000, output_tokens: 0 };

/** A group, a key and a team with budgets of ten dollars a month each. Every lease is charged the usage that it reports. */
async function budgets(name: string): Promise<void> {
  const limits = { budget_usd: { per_month: 10 } };
  const hash = await gatewayKeyHash(KEY['headgate-key']);
  const match = { upstreams: ['up'] };
  await limitTo([group(name, 5, { match, limits: { max_concurrency: 5, ...limits } })], {
    leases: 'keys',
    upstreams: [
      { id: 'up', base_url: 'https://up.test', prices: { 'm-*': { input: 1, output: 1 } } },
    ],
    keys: [{ id: `k-${name}`, hash, allow: ['lease', 'lease_usage'], team: `t-${name}`, limits }],
    teams: [{ id: `t-${name}`, limits }],
  });
}

async function spend(usd: number): Promise<void> {
  const { lease } = await leased(WANTED, KEY);
  await del(lease, { usage: { ...USAGE, input_tokens: usd * 1_000_000 } }, KEY);
}

const pathOf = (name: string): string => `/groups/${encodeURIComponent(name)}/budget/corrections`;

const correct = (name: string, body: object) => admin('POST', pathOf(name), body);
const undo = (name: string, id: string) => admin('POST', `${pathOf(name)}/${id}/undo`);

async function spentOf(name: string): Promise<number> {
  const { json } = await admin('GET', `/groups/${encodeURIComponent(name)}/status`);
  return json.spend.month_usd as number;
}

it('a correction reopens a budget that a wrong charge exhausted, and the undo exhausts it again', async () => {
  await budgets('closed');
  await spend(10);
  const all = ['closed', 'key:k-closed', 'team:t-closed'];
  expect(await post(WANTED, KEY)).toMatchObject({ status: 402, reason: 'budget_exhausted' });
  for (const name of all) {
    const { status, json } = await correct(name, { amount_usd: -9, id: 'wrong', note: 'a slip' });
    expect({ status, json }).toMatchObject({
      status: 200,
      json: {
        group: name,
        correction: { id: 'wrong', period: 'month', amount_usd: -9, undone_at: null },
        spent_usd: { month: COST },
      },
    });
    expect(await spentOf(name)).toBeCloseTo(COST, 6);
  }
  const { lease } = await leased(WANTED, KEY);
  await del(lease, { usage: { input_tokens: 0, output_tokens: 0 } }, KEY);
  for (const name of all) {
    expect((await undo(name, 'wrong')).json.spent_usd.month).toBeCloseTo(10, 6);
    expect((await undo(name, 'wrong')).json.spent_usd.month).toBeCloseTo(10, 6);
  }
  expect(await post(WANTED, KEY)).toMatchObject({ status: 402 });
  const { json } = await admin('GET', '/audit?limit=6');
  const actions = (json.entries as { action: string }[]).map(({ action }) => action);
  expect(actions.toSorted()).toEqual(
    all
      .flatMap((name) => [
        `budget ${name}: correct by -9 USD, month, wrong: a slip`,
        `budget ${name}: undo correction wrong`,
      ])
      .toSorted(),
  );
});

it('the same id corrects once, also across a reset of the pool', async () => {
  await budgets('again');
  await spend(5);
  for (const _ of [1, 2]) {
    const { json } = await correct('again', { amount_usd: -2, id: 'one' });
    expect(json.spent_usd.month).toBeCloseTo(3, 6);
    await crashPool('again');
  }
  expect(await spentOf('again')).toBeCloseTo(3, 1);
  const { json } = await admin('GET', pathOf('again'));
  expect(json.corrections).toMatchObject([{ id: 'one', amount_usd: -2, by: 'admin-token' }]);
  await undo('again', 'one');
  await crashPool('again');
  expect((await admin('GET', pathOf('again'))).json.corrections).toMatchObject([
    { undone_at: expect.any(String) },
  ]);
});

it('a member whose own budget a wrong charge has closed opens again', async () => {
  const prices = { 'm-*': { input: 1, output: 1 } };
  const limits = { max_concurrency: 5, budget_usd: { per_month: 1_000 } };
  const members = [{ upstream: 'up', limits: { budget_usd: { per_month: 10 } } }];
  const hash = await gatewayKeyHash(KEY['headgate-key']);
  await limitTo([group('of-members', 5, { limits, members })], {
    leases: 'keys',
    upstreams: [{ id: 'up', base_url: 'https://up.test', prices }],
    keys: [{ id: 'k', hash, allow: ['lease', 'lease_usage'] }],
  });
  const wanted = { group: 'of-members', model: 'm-1' };
  const { lease } = await leased(wanted, KEY);
  await del(lease, { usage: { ...USAGE, input_tokens: 10_000_000 } }, KEY);
  expect(await post(wanted, KEY)).toMatchObject({ status: 402 });
  const { json } = await correct('of-members', { amount_usd: -9, member: 'up', id: 'one' });
  expect(json).toMatchObject({ correction: { member: 'up' }, spent_usd: { month: COST } });
  expect(await spentOf('of-members')).toBeCloseTo(10, 6);
  await del(
    (await leased(wanted, KEY)).lease,
    { usage: { input_tokens: 0, output_tokens: 0 } },
    KEY,
  );
  const other = await correct('of-members', { amount_usd: -9, id: 'one' });
  expect(other).toMatchObject({
    status: 409,
    json: { detail: expect.stringContaining('member up') },
  });
  const listed = await admin('GET', pathOf('of-members'));
  expect(listed.json.corrections).toMatchObject([{ id: 'one', member: 'up' }]);
  const undone = await undo('of-members', 'one');
  expect(undone.json).toMatchObject({ correction: { member: 'up' }, spent_usd: { month: 10 } });
  expect(await post(wanted, KEY)).toMatchObject({ status: 402 });
  expect(await correct('of-members', { amount_usd: 1, member: 'nobody' })).toMatchObject({
    status: 404,
    json: { detail: expect.stringContaining('It has: `up`.') },
  });
});

it('of two corrections at once with one id and other amounts one is refused', async () => {
  await budgets('race');
  const all = await Promise.all(
    [3, 5].map((amount_usd) => correct('race', { amount_usd, id: 'one' })),
  );
  expect(all.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
});

it('an id belongs to one amount and period', async () => {
  await budgets('taken');
  await spend(5);
  await correct('taken', { amount_usd: -2, id: 'one', period: 'day' });
  for (const other of [{ amount_usd: -3 }, { amount_usd: -2, period: 'hour' }]) {
    const { status, json } = await correct('taken', { period: 'day', ...other, id: 'one' });
    expect({ status, json }).toMatchObject({
      status: 409,
      json: { detail: expect.stringContaining('by -2 USD (day)') },
    });
  }
  expect(await spentOf('taken')).toBeCloseTo(3, 6);
});

/** Renames a table of the directory. */
const rename = (from: string, to: string) =>
  runInDurableObject(directoryOf(env) as never, (_instance, { storage }: DurableObjectState) => {
    storage.sql.exec(`ALTER TABLE ${from} RENAME TO ${to}`);
  });

it('makes no change without an audit entry', async () => {
  await budgets('noted');
  await spend(5);
  const whileUnwritten = async <Answer>(act: () => Promise<Answer>): Promise<Answer> => {
    await rename('audit_log', 'audit_away');
    try {
      return await act();
    } finally {
      await rename('audit_away', 'audit_log');
    }
  };
  const fix = () => correct('noted', { amount_usd: -2, id: 'one' });
  expect((await whileUnwritten(fix)).status).toBeGreaterThanOrEqual(500);
  expect(await spentOf('noted')).toBeCloseTo(5, 6);
  expect((await fix()).status).toBe(200);
  expect((await whileUnwritten(() => undo('noted', 'one'))).status).toBeGreaterThanOrEqual(500);
  expect(await spentOf('noted')).toBeCloseTo(3, 6);
  expect((await undo('noted', 'one')).status).toBe(200);
  const { json } = await admin('GET', '/audit?limit=2');
  expect((json.entries as { action: string }[]).map(({ action }) => action)).toEqual([
    'budget noted: undo correction one',
    'budget noted: correct by -2 USD, month, one',
  ]);
});

it('is exact while calls are settled', async () => {
  await budgets('beside');
  await Promise.all([
    spend(1),
    correct('beside', { amount_usd: 2 }),
    spend(1),
    correct('beside', { amount_usd: 0.5, period: 'hour' }),
    spend(1),
  ]);
  const { json } = await correct('beside', { amount_usd: -0.25, period: 'day' });
  expect(json.spent_usd.month).toBeCloseTo(5.25, 6);
  expect(json.spent_usd.day).toBeCloseTo(3.25, 6);
  expect(json.spent_usd.hour).toBeCloseTo(3.5, 6);
  expect((await pool('beside').status()).spend?.reserved_usd).toBe(0);
});

it('a group that is split is corrected in a named partition', async () => {
  const limits = { max_concurrency: 5, budget_usd: { per_month: 10 } };
  await limitTo([group('split', 5, { limits, partition_by: ['model'] })], {
    upstreams: [
      { id: 'up', base_url: 'https://up.test', prices: { 'm-*': { input: 1, output: 1 } } },
    ],
  });
  for (const partition of ['m-1', 'm-2']) {
    await directoryOf(env).list({ group: 'split', partition });
  }
  const unnamed = await correct('split', { amount_usd: 1 });
  expect(unnamed).toMatchObject({ status: 422, json: { errors: [{ path: 'partition' }] } });
  expect(await correct('split', { amount_usd: 1, partition: 'm-3' })).toMatchObject({
    status: 404,
  });
  const { json } = await correct('split', { amount_usd: 1, partition: 'm-2', id: 'one' });
  expect(json).toMatchObject({ correction: { partition: 'm-2' }, spent_usd: { month: 1 } });
  const listed = await admin('GET', pathOf('split'));
  expect(listed.json.corrections).toMatchObject([{ id: 'one', partition: 'm-2' }]);
  expect((await undo('split', 'one')).json).toMatchObject({
    correction: { partition: 'm-2' },
    spent_usd: { month: 0 },
  });
});

it.each([
  ['nothing', { amount_usd: 0 }, 'amount_usd'],
  ['no amount', {}, 'amount_usd'],
  ['too much', { amount_usd: 1e10 }, 'amount_usd'],
  ['a period that is none', { amount_usd: 1, period: 'year' }, 'period'],
  ['an id that is none', { amount_usd: 1, id: 'a/b' }, 'id'],
])('refuses %s, and names the field', async (_name, body, field) => {
  await limitTo([group('refuses', 1)]);
  const { status, json } = await correct('refuses', body);
  expect(status).toBe(422);
  expect(json.errors[0].path).toBe(field);
});

it('refuses an unknown group or correction', async () => {
  await limitTo([group('there', 1)]);
  expect(await correct('nowhere', { amount_usd: 1 })).toMatchObject({ status: 404 });
  expect(await correct('key:nobody', { amount_usd: 1 })).toMatchObject({ status: 404 });
  expect(await undo('there', 'nothing')).toMatchObject({ status: 404 });
});
