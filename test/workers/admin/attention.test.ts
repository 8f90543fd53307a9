// What needs a person, as the admin API lists it: of real pools, real refusals and a real configuration.
import { beforeEach, expect, it, vi } from 'vitest';
import { configSchema, type ConfigInput } from '../../../src/contract/config/config.ts';
import { directoryOf } from '../../../src/env.ts';
import { readAttention } from '../../../src/overview/all-groups.ts';
import { take } from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { call, env, noteVersion, until } from '../support/worker.ts';
import { asAdmin, bodyOf } from './ask.ts';

async function put(config: ConfigInput): Promise<void> {
  const { version = 0 } = (await directoryOf(env).snapshot(null)) ?? {};
  noteVersion(
    await directoryOf(env).replace(configSchema.parse(config), version, 'test', 'faults'),
  );
}

const list = async () => bodyOf(await asAdmin('GET /attention', {})).attention;

beforeEach(() => {
  passTime(0);
  return () => void vi.restoreAllMocks();
});

it('lists groups, refused calls, secrets and warnings, the worst first', async () => {
  await put({
    groups: [
      { name: 'refusing', limits: { max_concurrency: 2 } },
      { name: 'served', limits: { max_concurrency: 2 } },
    ],
    upstreams: [
      {
        id: 'secretive',
        base_url: 'https://secretive.example/v1',
        dialect: 'openai',
        auth: { secret: 'UPSTREAM_SECRETIVE' },
        models: ['secret-*'],
      },
    ],
    keys: [{ id: 'app', hash: `sha256:${'b'.repeat(64)}`, limits: { budget_usd: { per_day: 1 } } }],
  });
  for (const ticket of ['a', 'b', 'c', 'd', 'e']) {
    const { lease } = await take('refusing', ticket);
    const said = { retryAfterMs: null, slotsMax: null, hints: [], words: 'quota exceeded' };
    await lease.report({ kind: 'quota', ...said }, false);
    await lease.release('failed', 429);
  }
  const { lease } = await take('served', 'a');
  await lease.release('success', 200);
  const refused = await call('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer hg_nobody' },
    body: JSON.stringify({ model: 'secret-1', messages: [] }),
  });
  expect(refused.headers.get('headgate-reason')).toMatch(/^key_/);
  await refused.body?.cancel();
  await until(async () => expect((await list()).map(({ rule }) => rule)).toContain('key_refused'));
  const entries = await list();
  expect(entries.map(({ rule, subject }) => `${rule} ${subject.kind} ${subject.id}`)).toEqual(
    expect.arrayContaining([
      'refused_by_upstream group refusing',
      'secret_missing upstream secretive',
    ]),
  );
  expect(entries[0]).toMatchObject({
    rule: 'refused_by_upstream',
    group: 'refusing',
    count: 5,
    says: "`openai` refuses every call: 5 × 429 'quota exceeded' in 1 minute.",
    words: 'quota exceeded',
  });
  expect(entries.some(({ group }) => group === 'served')).toBe(false);
});

it('lists a METRICS_TOKEN that cannot be used, and none that is fine or not set', async () => {
  await put({});
  const missing = async (token?: string) => {
    const { all } = await readAttention({
      ...env,
      ...(token !== undefined && { METRICS_TOKEN: token }),
    });
    return all.filter(({ subject }) => subject.id === 'metrics');
  };
  expect(await missing('two words')).toMatchObject([
    { rule: 'secret_missing', subject: { kind: 'deployment', id: 'metrics' } },
  ]);
  expect(await missing('fine')).toEqual([]);
  expect(await missing()).toEqual([]);
});

it('picks one rule, and names the nearest of one that is unknown', async () => {
  await put({ groups: [{ name: 'halted', paused: true }] });
  const { attention } = bodyOf(await asAdmin('GET /attention', { query: { rule: 'paused' } }));
  expect(attention).toMatchObject([{ rule: 'paused', subject: { kind: 'group', id: 'halted' } }]);
  const wrong = await asAdmin('GET /attention', { query: { rule: 'pausd' as 'paused' } });
  expect(wrong.status).toBe(422);
  expect(JSON.stringify(wrong)).toContain('did you mean');
});

it('finds a group whose calls Headgate refuses before any pool sees them', async () => {
  await put({ groups: [{ name: 'unpriced', limits: { budget_usd: { per_day: 5 } } }] });
  const at = new Date().toISOString();
  await directoryOf(env).noteRefusals([
    {
      reason: 'price_unknown',
      key: null,
      key_kind: null,
      team: null,
      group: 'unpriced',
      upstream: 'openai',
      model: 'gpt-x',
      count: 400,
      first_at: at,
      last_at: at,
      message: 'No price is known.',
      request_ids: [],
    },
  ]);
  const status = bodyOf(
    await asAdmin('GET /groups/{name}/status', { params: { name: 'unpriced' } }),
  );
  expect(status).toMatchObject({
    state: 'nothing served',
    lately: { rejected: { price_unknown: 400 } },
  });
  const entries = await list();
  expect(entries.find(({ rule }) => rule === 'price_missing')).toMatchObject({
    subject: { kind: 'group', id: 'unpriced' },
    count: 400,
    words: 'No price is known.',
  });
});
