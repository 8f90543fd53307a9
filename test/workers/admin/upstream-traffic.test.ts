// Upstreams are shown by the calls that went there: a group by models alone says nothing of those it was never called for.
import { beforeEach, expect, it, vi } from 'vitest';
import { poolName } from '../../../src/contract/pool-name.ts';
import { configSchema, type ConfigInput } from '../../../src/contract/config/config.ts';
import { directoryOf } from '../../../src/env.ts';
import type { RefusalScope, RefusalKind } from '../../../src/core/words/signal.ts';
import { resetPool, take } from '../support/pool.ts';
import { stopTime } from '../support/time.ts';
import { env, noteVersion } from '../support/worker.ts';
import { asAdmin, bodyOf } from './ask.ts';

const BY_MODELS = { name: 'by-models', match: { models: ['*'] }, limits: { max_concurrency: 7 } };

async function put(config: ConfigInput): Promise<void> {
  const { version = 0 } = (await directoryOf(env).snapshot(null)) ?? {};
  noteVersion(await directoryOf(env).replace(configSchema.parse(config), version, 'test', 'reset'));
}

const shown = async (id: string) =>
  bodyOf(await asAdmin('GET /upstreams/{id}', { params: { id } }));

let tickets = 0;

async function serve(group: string, upstream: string): Promise<void> {
  const { lease } = await take(group, `served-${(tickets += 1)}`, { upstream });
  await lease.release('success', 200);
}

async function refuse(
  pool: string,
  upstream: string,
  kind: RefusalKind,
  waitMs: number,
  about: { readonly model?: string; readonly scope?: RefusalScope } = {},
) {
  const { model = 'gpt-4o', ...scope } = about;
  const { lease } = await take(pool, `refused-${(tickets += 1)}`, { upstream, model });
  await lease.report({ kind, retryAfterMs: waitMs, slotsMax: null, hints: [], ...scope }, false);
  await lease.release('failed', 429);
}

beforeEach(() => {
  // Counts are of this day, whatever the clock says.
  stopTime();
  return () => void vi.restoreAllMocks();
});

it('a group by models alone is shown only at the upstream that was called', async () => {
  const group = 'called-for-one';
  await put({ groups: [{ ...BY_MODELS, name: group }] });
  expect(await shown('groq')).toMatchObject({ groups: [], calls: null });
  await refuse(group, 'groq', 'requests', 3_600_000);
  const groq = await shown('groq');
  expect(groq).toMatchObject({
    groups: [group],
    calls: {
      in_flight: 0,
      day_granted: 1,
      day_refusals: { requests: 1 },
      last_refusals: [{ kind: 'requests', retry_after_ms: 3_600_000, model: 'gpt-4o' }],
    },
    health: { state: 'waiting', refusals_total: { requests: 1 }, limits: { [group]: 7 } },
  });
  const { upstreams } = bodyOf(await asAdmin('GET /upstreams', { query: { limit: 1_000 } }));
  expect(upstreams.length).toBeGreaterThan(20);
  for (const { id, groups, calls, health } of upstreams) {
    if (id === 'groq') continue;
    expect({ id, groups, calls, health }).toEqual({
      id,
      groups: [],
      calls: null,
      health: {
        state: 'unknown',
        paused_until: null,
        breaker_until: null,
        refusals_total: {},
        limits: {},
      },
    });
  }
});

it('a group that names an upstream stands there without health until it is called', async () => {
  const group = 'names-it';
  await put({ groups: [{ name: group, match: { upstreams: ['groq', 'open*'] } }] });
  expect(await shown('groq')).toMatchObject({
    groups: [group],
    calls: null,
    health: { state: 'unknown', limits: {} },
  });
  expect(await shown('openai')).toMatchObject({ groups: [], calls: null });
  const held = await take(group, 'named', { upstream: 'groq' });
  expect(await shown('groq')).toMatchObject({ calls: { in_flight: 1 }, health: { state: 'ok' } });
  await held.lease.release('success', 200);
});

it('what stops a group is put down to the upstream that refused last', async () => {
  const group = 'called-for-two';
  await put({ groups: [{ ...BY_MODELS, name: group }] });
  await serve(group, 'openai');
  await refuse(group, 'groq', 'requests', 3_600_000);
  expect((await shown('groq')).health.state).toBe('waiting');
  expect(await shown('openai')).toMatchObject({
    groups: [group],
    calls: { day_granted: 1, day_refusals: {}, last_refusals: [] },
    health: { state: 'ok', paused_until: null, refusals_total: {} },
  });
});

it('an upstream that stops one model is partly paused, unless another group says that it stops all', async () => {
  const [some, all] = ['stops-some', 'stops-all'];
  await put({
    groups: [
      { ...BY_MODELS, name: some, match: { models: ['a*'] } },
      { ...BY_MODELS, name: all, match: { models: ['b*'] } },
    ],
  });
  await refuse(some, 'groq', 'requests', 3_600_000, { model: 'a-1', scope: 'model' });
  const { health } = await shown('groq');
  const stopped = [{ model: 'a-1', service_tier: null, credential: null }];
  expect(health).toMatchObject({ state: 'partly paused', stopped, breaker_until: null });
  await refuse(all, 'groq', 'requests', 60_000, { model: 'b-1' });
  const both = (await shown('groq')).health;
  expect(both).toMatchObject({ state: 'waiting', limits: { [some]: 7, [all]: 7 } });
  expect(both.stopped).toBeUndefined();
  expect(Date.parse(both.paused_until ?? '')).toBeLessThan(Date.parse(health.paused_until ?? ''));
});

it('models that a member stops in different partitions are all listed', async () => {
  const group = 'of-partitions';
  await put({
    groups: [
      {
        name: group,
        match: { models: ['*'] },
        partition_by: ['model'],
        members: [{ upstream: 'groq' }, { upstream: 'mistral' }],
      },
    ],
  });
  const refused = async (partition: string, model: string): Promise<void> => {
    const fields = { group, partition, upstream: 'groq', model };
    const held = await take(poolName(group, partition), `p-${model}`, fields);
    expect(held.member).toBe('groq');
    const signal = {
      kind: 'requests',
      retryAfterMs: 3_600_000,
      slotsMax: null,
      hints: [],
    } as const;
    await held.lease.report({ ...signal, scope: 'model' }, false);
    await held.lease.release('failed', 429);
    await directoryOf(env).list({ group, partition });
  };
  await refused('one', 'model-1');
  await refused('two', 'model-2');
  const { members, scopes, upstreams } = bodyOf(
    await asAdmin('GET /groups/{name}/status', { params: { name: group } }),
  );
  expect(members?.[0]).toMatchObject({ id: 'groq', paused_until: null });
  expect(members?.[0]?.about).toBeUndefined();
  const models = (all: readonly { readonly model: string | null }[]) =>
    new Set(all.map(({ model }) => model));
  expect(scopes?.map(({ member }) => member)).toEqual(['groq', 'groq']);
  const both = new Set(['model-1', 'model-2']);
  expect(models(scopes?.map(({ about }) => about) ?? [])).toEqual(both);
  expect(upstreams.find(({ id }) => id === 'groq')?.state).toBe('partly paused');
  const { health } = await shown('groq');
  expect(health.state).toBe('partly paused');
  expect(models(health.stopped ?? [])).toEqual(both);
});

it('a call that was never sent is none', async () => {
  const group = 'never-sent';
  await put({ groups: [{ ...BY_MODELS, name: group }] });
  const { lease } = await take(group, 'never', { upstream: 'groq' });
  await lease.release('unused', null);
  expect(await shown('groq')).toMatchObject({ groups: [], calls: null });
});

it('members tell of their own upstreams', async () => {
  const group = 'of-members';
  await put({
    groups: [
      {
        name: group,
        match: { models: ['*'] },
        members: [
          { upstream: 'groq', limits: { max_concurrency: 2 } },
          { upstream: 'mistral', limits: { max_concurrency: 3 } },
        ],
      },
    ],
  });
  const first = await take(group, 'm1', { upstream: 'openai' });
  const at = first.member ?? '';
  await first.lease.report(
    { kind: 'requests', retryAfterMs: 3_600_000, slotsMax: null, hints: [] },
    false,
  );
  await first.lease.release('failed', 429);
  await serve(group, 'openai');
  const other = at === 'groq' ? 'mistral' : 'groq';
  expect(await shown(at)).toMatchObject({
    groups: [group],
    calls: { day_granted: 1, day_refusals: { requests: 1 } },
    health: { state: 'waiting', limits: { [group]: at === 'groq' ? 2 : 3 } },
  });
  expect(await shown(other)).toMatchObject({
    calls: { day_granted: 1, day_refusals: {} },
    health: { state: 'ok', limits: { [group]: at === 'groq' ? 3 : 2 } },
  });
  // The upstream by which the group was found was never called.
  expect(await shown('openai')).toMatchObject({ groups: [], calls: null });
});

it('a reset of the object forgets nothing of it', async () => {
  const group = 'reset-there';
  await put({ groups: [{ ...BY_MODELS, name: group }] });
  await serve(group, 'openai');
  await serve(group, 'openai');
  await refuse(group, 'groq', 'tokens', 1_000);
  await resetPool(group);
  expect((await shown('openai')).calls).toMatchObject({ day_granted: 2 });
  expect((await shown('groq')).calls).toMatchObject({
    day_granted: 1,
    last_refusals: [{ kind: 'tokens', retry_after_ms: 1_000 }],
  });
});
