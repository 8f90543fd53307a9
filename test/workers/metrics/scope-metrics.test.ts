// Metrics and warnings of a refusal that is about some calls only: the group's own gauges stay at "not stopped", and the
// calls that are held are counted and named.
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { SERVED, type UpstreamSignal } from '../../../src/core/words/signal.ts';
import type { RequestFields } from '../../support/requests.ts';
import { parseExposition } from '../../unit/metrics/exposition-parser.ts';
import { nothingLeaks, NO_COOLDOWN, pool, queueUp, resetPool, take } from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { call, configure } from '../support/worker.ts';

let made = 0;
let name = '';

const QUEUE = { timeout_ms: 3_600_000 };

beforeEach(async () => {
  made += 1;
  name = `scoped-${made}`;
  await configure({
    groups: [{ name, limits: { max_concurrency: 40 }, holds: NO_COOLDOWN, queue: QUEUE }],
  });
});

afterAll(nothingLeaks);

let tickets = 0;

type ScopeMetricsFields = RequestFields;

/** A call that is granted, and answered so. */
async function answered(
  signal: Partial<UpstreamSignal>,
  fields: ScopeMetricsFields = {},
): Promise<void> {
  tickets += 1;
  const { lease } = await take(name, `t-${tickets}`, fields);
  await lease.report({ ...SERVED, ...signal }, false);
  await lease.release(signal.kind === 'served' ? 'success' : 'refused', null);
}

const FULL = { kind: 'requests', scope: 'model', retryAfterMs: 600_000 } as const;
const LONG = { ...FULL, retryAfterMs: 3_000_000 } as const;

/** The model `full` is refused after another one was called. */
async function oneModelFull(): Promise<void> {
  await answered(SERVED, { model: 'free' });
  await answered(FULL, { model: 'full' });
}

async function breakFor(fields: ScopeMetricsFields, scope: 'model' | 'upstream'): Promise<void> {
  for (let count = 0; count < 10; count += 1) {
    await answered({ kind: 'error', scope }, fields);
  }
}

/** The samples of one metric of the group: its value by the values of its own labels. */
async function samples(metric: string): Promise<Record<string, number>> {
  const scraped = await call('/metrics', {
    headers: { authorization: 'Bearer test-metrics-token' },
  });
  const all = parseExposition(await scraped.text()).flatMap((family) => family.samples);
  const own = all.filter((one) => one.name === metric && one.labels['group'] === name);
  return Object.fromEntries(
    own.map(({ labels: { group: _group, partition: _partition, ...labels }, value }) => [
      Object.values(labels).join(' '),
      value,
    ]),
  );
}

const paused = async () => (await samples('headgate_paused'))['upstream'];

const breakerOpen = async () => (await samples('headgate_breaker_state'))['open'];

const stopped = () => samples('headgate_scopes_stopped');

const held = () => samples('headgate_queue_held_by_scope');

const warnings = () => pool(name).warnings();

async function cancel(...ids: string[]): Promise<void> {
  for (const id of ids) await pool(name).cancel(id);
}

describe('the metrics', () => {
  it('count a full model and its queued calls, without its name', async () => {
    await oneModelFull();
    const { answer } = await queueUp(name, 'waits', { model: 'full' });
    expect([await paused(), await breakerOpen()]).toEqual([0, 0]);
    expect(await stopped()).toEqual({ 'model pause': 1 });
    expect(await held()).toEqual({ model: 1 });
    await answered(FULL, { model: 'other', credential: 'fp_own' });
    await answered(FULL, { model: 'free', tier: 'flex' });
    expect(await stopped()).toEqual({
      'model pause': 1,
      'model_key pause': 1,
      'model_tier pause': 1,
    });
    await cancel('waits');
    await answer;
    expect(await held()).toEqual({});
  });

  it('count the only model of a group as a model, not as the group', async () => {
    await answered(FULL, { model: 'full' });
    const { answer } = await queueUp(name, 'waits', { model: 'full' });
    expect(await pool(name).status()).toMatchObject({ about: { model: 'full' } });
    expect(await paused()).toBe(0);
    expect(await stopped()).toEqual({ 'model pause': 1 });
    expect(await held()).toEqual({ model: 1 });
    await answered(SERVED, { model: 'free' });
    expect(await stopped()).toEqual({ 'model pause': 1 });
    expect(await held()).toEqual({ model: 1 });
    await cancel('waits');
    await answer;
  });

  it('keep the limit of the group while its only model has a learned one', async () => {
    const busy = await take(name, 'busy', { model: 'narrow' });
    await answered({ kind: 'concurrency', scope: 'model', slotsMax: 1 }, { model: 'narrow' });
    expect(await pool(name).status()).toMatchObject({
      about: { model: 'narrow' },
      limit: { effective: 1, source: 'learned' },
    });
    expect(await samples('headgate_slots_limit')).toEqual({ '': 40 });
    await busy.lease.release('success', 200);
  });

  it('count the breaker of a model while it is open and half open', async () => {
    await answered(SERVED, { model: 'free' });
    await breakFor({ model: 'bad' }, 'model');
    expect(await breakerOpen()).toBe(0);
    expect(await stopped()).toEqual({ 'model breaker': 1 });
    passTime(20_000);
    const probe = await take(name, 'probe', { model: 'bad' });
    expect((await samples('headgate_breaker_state'))['closed']).toBe(1);
    expect(await stopped()).toEqual({ 'model breaker': 1 });
    await probe.lease.release('unused', null);
  });

  it('count a learned ceiling only while it holds calls', async () => {
    await answered(SERVED, { model: 'free' });
    const busy = await take(name, 'busy', { model: 'narrow' });
    await answered({ kind: 'concurrency', scope: 'model', slotsMax: 1 }, { model: 'narrow' });
    passTime(10_000);
    expect(await stopped()).toEqual({});
    const { answer } = await queueUp(name, 'waits', { model: 'narrow' });
    expect(await stopped()).toEqual({ 'model ceiling': 1 });
    expect(await held()).toEqual({ model: 1 });
    await cancel('waits');
    await answer;
    await busy.lease.release('success', 200);
  });

  it('count a stop of all calls for the group', async () => {
    await answered(SERVED, { model: 'free' });
    await answered({ ...FULL, scope: 'upstream' }, { model: 'full' });
    expect(await paused()).toBe(1);
    expect(await stopped()).toEqual({});
  });

  it('count a scope of members where they have it, and the group as stopped only for its calls', async () => {
    const members = ['openai', 'groq'].map((upstream) => ({ name: upstream, upstream }));
    await configure({ groups: [{ name, members, holds: NO_COOLDOWN, queue: QUEUE }] });
    await answered(FULL, { model: 'full' });
    await answered(FULL, { model: 'full' });
    expect(await pool(name).status()).toMatchObject({
      paused_until: expect.any(String),
      about: { model: 'full' },
    });
    expect(await paused()).toBe(0);
    expect(await stopped()).toEqual({ 'model pause': 2 });
    const { answer } = await queueUp(name, 'waits', { model: 'full' });
    expect(await held()).toEqual({ model: 1 });
    await cancel('waits');
    await answer;
  });
});

describe('the warnings', () => {
  it('name the model whose pause is long, and the key by its fingerprint', async () => {
    await answered(SERVED, { model: 'free' });
    await answered({ ...LONG, words: 'used up' }, { model: 'Full' });
    await answered(LONG, { model: 'other', credential: 'fp_own' });
    const [ofKey, ofModel] = await warnings();
    expect(ofModel).toMatchObject({
      kind: 'pause_long',
      scope: { model: 'full', service_tier: null, credential: null },
    });
    expect(ofModel?.message).toMatch(
      /^The upstream refuses calls with model full until .+ All other calls start as usual\. Its message: "used up"$/,
    );
    expect(ofKey).toMatchObject({ kind: 'pause_long', scope: { credential: 'fp_own' } });
    expect(ofKey?.message).toContain('calls with model other, key fp_own until');
  });

  it('name the only model of a group once, also after another model and after a reset', async () => {
    await answered(LONG, { model: 'full' });
    expect(await warnings()).toMatchObject([{ kind: 'pause_long', scope: { model: 'full' } }]);
    await answered(SERVED, { model: 'free' });
    expect(await warnings()).toHaveLength(1);
    passTime(700_000);
    await pool(name).status();
    expect(await warnings()).toHaveLength(1);
    await resetPool(name);
    await pool(name).status();
    expect(await warnings()).toHaveLength(1);
  });

  it('name the model whose breaker opened, in the log too', async () => {
    const lines: string[] = [];
    const spy = vi.spyOn(console, 'log').mockImplementation((line: string) => {
      if (line.includes(`"${name}"`)) lines.push(line);
    });
    await answered(SERVED, { model: 'free' });
    await breakFor({ model: 'bad' }, 'model');
    spy.mockRestore();
    expect(await warnings()).toMatchObject([
      {
        kind: 'breaker_open',
        scope: { model: 'bad' },
        message:
          'Too many calls with model bad failed at the upstream. The breaker stops these calls, then probes with single calls. All other calls start as usual.',
      },
    ]);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { kind: 'breaker_open', scope: 'model bad' },
    ]);
  });

  it('name no scope if all calls are stopped', async () => {
    await breakFor({ model: 'bad' }, 'upstream');
    expect([await breakerOpen(), await stopped()]).toEqual([1, {}]);
    const [warning] = await warnings();
    expect(warning).toMatchObject({
      kind: 'breaker_open',
      message:
        'Too many calls failed at the upstream. The breaker stops these calls, then probes with single calls.',
    });
    expect(warning).not.toHaveProperty('scope');
  });

  it('name ten scopes of a kind in ten minutes, and shorten names from callers', async () => {
    await answered(SERVED, { model: 'free' });
    for (let model = 0; model < 12; model += 1) {
      await answered(LONG, { model: `${model}-${'m'.repeat(300)}` });
    }
    const named = await warnings();
    expect(named).toHaveLength(10);
    expect(named[0]?.scope?.model).toHaveLength(128);
    expect(await stopped()).toEqual({ 'model pause': 12 });
    passTime(600_000);
    await answered(LONG, { model: 'later' });
    expect(await warnings()).toHaveLength(11);
  });
});
