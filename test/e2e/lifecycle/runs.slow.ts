// Runs on plain workerd: a real SDK starts them and asks for them, and one of which nobody asks runs out by an alarm.
import OpenAI from 'openai';
import { afterEach, expect, it } from 'vitest';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS, practiceConfig, STAGE_TOKEN, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

const LIMIT = 2;
const CALLS = 6;

let stage: LifecycleStage;

type RunsConfig = Parameters<typeof startStage>[0]['config'];

const limited = (holds: object = {}): RunsConfig =>
  practiceConfig(LIMIT, { holds: { ...NO_HOLDS, ...holds } });

async function begin(config = limited()): Promise<OpenAI> {
  stage = await startStage({
    config,
    upstream: { runs: true, runLimit: LIMIT },
  });
  return new OpenAI({ baseURL: `${stage.url()}/practice/v1`, apiKey: 'sk-mine', maxRetries: 0 });
}

afterEach(() => stage.close());

interface RunsOf {
  readonly inFlight: number;
  readonly peak: number;
  readonly total: number;
  readonly rejected: number;
}

async function control(verb: string, body: object): Promise<RunsOf> {
  const init = { method: 'POST', body: JSON.stringify(body) };
  const answer = await fetch(`${stage.upstream.url}/__strict/${verb}`, init);
  return ((await answer.json()) as { readonly runs: RunsOf }).runs;
}

it('background responses of an SDK wait for one another until each is seen to have ended', async () => {
  const client = await begin();
  const all = Array.from({ length: CALLS }, async () => {
    const { id, status } = await client.responses.create({
      model: 'gpt-5',
      input: 'x',
      background: true,
    });
    expect(status).toBe('queued');
    expect((await client.responses.retrieve(id)).status).toBe('queued');
    await control('end-run', { id, status: 'completed' });
    expect((await client.responses.retrieve(id)).status).toBe('completed');
  });
  await Promise.all(all);
  const runs = await control('end-run', { status: 'completed' });
  expect(runs).toMatchObject({ inFlight: 0, total: CALLS, rejected: 0 });
  expect(runs.peak).toBeLessThanOrEqual(LIMIT);
  await stage.admin.untilIdle();
});

it('a run that is cancelled by an SDK frees its slot', async () => {
  const client = await begin();
  const { id } = await client.responses.create({ model: 'gpt-5', input: 'x', background: true });
  await stage.admin.untilGroup('practice', { in_use: 1 });
  expect((await client.responses.cancel(id)).status).toBe('cancelled');
  await stage.admin.untilIdle();
});

it('a run of which nobody asks gives its slot back by an alarm', async () => {
  const client = await begin(limited({ max_run_ms: 1_500 }));
  await client.responses.create({ model: 'gpt-5', input: 'x', background: true });
  await stage.admin.untilGroup('practice', { in_use: 1 });
  await stage.admin.untilIdle();
  await until('it is in the log', () => Promise.resolve(stage.logs().includes('run_not_ended')));
  expect(await kindsHeld()).toEqual([]);
});

it.each([
  ['stopped', () => stage.stop()],
  ['killed', () => stage.kill9()],
])('runs keep their slots where Headgate is %s and started again', async (_how, end) => {
  const before = await begin();
  const start = (client: OpenAI) =>
    client.responses.create({ model: 'gpt-5', input: 'x', background: true });
  const runs = await Promise.all(Array.from({ length: LIMIT }, () => start(before)));
  await until('all slots are held by runs', async () => (await kindsHeld()).length === LIMIT);
  await end();
  await stage.start();
  const after = new OpenAI({ baseURL: `${stage.url()}/practice/v1`, apiKey: 'sk-mine' });
  let isNextStarted = false;
  const next = start(after).finally(() => (isNextStarted = true));
  await until('the runs have taken up their slots', async () => {
    const kinds = await kindsHeld();
    return kinds.length === LIMIT && kinds.every((kind) => kind === 'run');
  });
  await stage.admin.untilGroup('practice', { in_use: LIMIT, queued: 1 });
  expect(isNextStarted).toBe(false);
  for (const { id } of runs) {
    await control('end-run', { id, status: 'completed' });
    await after.responses.retrieve(id);
  }
  const { id } = await next;
  const { peak, rejected } = await control('end-run', { id, status: 'completed' });
  expect({ peak, rejected }).toEqual({ peak: LIMIT, rejected: 0 });
  await after.responses.retrieve(id);
  await stage.admin.untilIdle();
});

/** Kinds of all leases that are held, in whatever pool. */
async function kindsHeld(): Promise<readonly unknown[]> {
  const headers = { authorization: `Bearer ${STAGE_TOKEN}` };
  const answer = await fetch(`${stage.url()}/admin/api/leases`, { headers });
  const { leases } = (await answer.json()) as { readonly leases: readonly { kind?: string }[] };
  return leases.map(({ kind }) => kind);
}

it('the first call with a key starts a run in a pool on trial, which holds it from then on', async () => {
  const client = await begin(({ url }) => ({ upstreams: [{ id: 'practice', base_url: url }] }));
  const { id } = await client.responses.create({ model: 'gpt-5', input: 'x', background: true });
  await until('it is a run', async () => (await kindsHeld()).join() === 'run');
  const other = await client.responses.create({ model: 'gpt-5', input: 'x', background: true });
  await until('both are', async () => (await kindsHeld()).join() === 'run,run');
  await control('end-run', { status: 'completed' });
  for (const each of [id, other.id]) await client.responses.retrieve(each);
  await until('nothing is held', async () => (await kindsHeld()).length === 0);
  expect((await control('end-run', { status: 'completed' })).total).toBe(2);
});
