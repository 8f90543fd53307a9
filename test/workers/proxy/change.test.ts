// Changes of the configuration while calls stream and wait. The upstream counts.
import { afterAll, beforeEach, expect, it } from 'vitest';
import {
  NO_COOLDOWN,
  nothingLeaks,
  pool,
  untilWrittenEmpty,
  untilStatus,
} from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import {
  admin,
  change,
  chat,
  configure,
  open,
  until,
  type WorkerOpenCall,
} from '../support/worker.ts';

const CHAT = '/up/v1/chat/completions';

let strict: Strict;
let group = '';
let groups = 0;

beforeEach(async () => {
  groups += 1;
  group = `change-${groups}`;
  strict = await strictScope('change', { silentAfterChunks: 1 });
});

afterAll(nothingLeaks);

function groupOf(name: string, slots: number, match: object = { upstreams: ['up'] }) {
  return { name, match, limits: { max_concurrency: slots }, holds: NO_COOLDOWN };
}

async function configureLimit(slots: number): Promise<void> {
  await configure({
    upstreams: [{ id: 'up', base_url: strict.url }],
    groups: [groupOf(group, slots)],
  });
}

function setLimit(slots: number): Promise<unknown> {
  return change('PATCH', `/groups/${group}`, { limits: { max_concurrency: slots } });
}

/** Starts calls one by one: the first `slots` stream, the others wait in this order. */
async function start(labels: readonly string[], slots: number): Promise<WorkerOpenCall[]> {
  const calls: WorkerOpenCall[] = [];
  for (const [at, label] of labels.entries()) {
    calls.push(open(CHAT, label));
    const in_use = Math.min(slots, at + 1);
    await untilStatus(group, { in_use, queued: at + 1 - in_use });
  }
  await untilInFlight(Math.min(slots, labels.length));
  return calls;
}

function untilInFlight(inFlight: number): Promise<void> {
  return until(async () => expect((await strict.stats()).inFlight).toBe(inFlight));
}

/** Lets everything stream to its end. */
async function finish(calls: readonly WorkerOpenCall[]): Promise<void> {
  await strict.configure({ silentAfterChunks: null });
  await strict.resume();
  expect(await Promise.all(calls.map(({ end }) => end))).toEqual(calls.map(() => 'done'));
  await untilStatus(group, { in_use: 0, queued: 0 });
}

it('a raised limit lets exactly so many more in, at once and in order', async () => {
  await configureLimit(2);
  const calls = await start(['a', 'b', 'c', 'd', 'e', 'f'], 2);
  await setLimit(4);
  await untilInFlight(4);
  expect(await pool(group).status()).toMatchObject({ in_use: 4, queued: 2 });
  const { arrivals, peak } = await strict.stats();
  expect(arrivals.map(({ label }) => label)).toEqual(['a', 'b', 'c', 'd']);
  expect(peak).toBe(4);
  await finish(calls);
  expect((await strict.stats()).peak).toBe(4);
});

it('a limit below what is in flight takes nothing away and grants nothing until there is room', async () => {
  await configureLimit(4);
  const calls = await start(['a', 'b', 'c', 'd', 'e', 'f'], 4);
  await setLimit(2);
  await untilStatus(group, { limit: { configured: 2, effective: 2, source: 'configured' } });
  expect(await pool(group).status()).toMatchObject({ in_use: 4, queued: 2 });
  for (const [gone, in_use] of [
    [0, 3],
    [1, 2],
  ] as const) {
    calls[gone]?.leave();
    await untilStatus(group, { in_use, queued: 2 });
    await until(async () => expect((await strict.stats()).aborted).toBe(gone + 1));
    expect((await strict.stats()).total).toBe(4);
  }
  calls[2]?.leave();
  await until(async () => expect(await strict.stats()).toMatchObject({ total: 5, aborted: 3 }));
  expect((await strict.stats()).inFlight).toBe(2);
  await finish(calls.slice(3));
});

it('a limit of 0 lets what streams go on and starts nothing until it is raised', async () => {
  await configureLimit(1);
  const [first, second] = await start(['a', 'b'], 1);
  await setLimit(0);
  await untilStatus(group, { limit: { configured: 0, effective: 0, source: 'configured' } });
  await strict.resume();
  expect(await first?.end).toBe('done');
  await untilStatus(group, { in_use: 0, queued: 1 });
  expect((await strict.stats()).total).toBe(1);
  await setLimit(1);
  await untilInFlight(1);
  await finish(second === undefined ? [] : [second]);
});

it('a pause holds the queue and nothing else, and a resume lets it go on in order', async () => {
  await configureLimit(2);
  const calls = await start(['a', 'b', 'c', 'd'], 2);
  await change('POST', `/groups/${group}/pause`);
  await untilStatus(group, { paused: true });
  await strict.resume();
  expect(await Promise.all(calls.slice(0, 2).map(({ end }) => end))).toEqual(['done', 'done']);
  const late = open(CHAT, 'late');
  await untilStatus(group, { in_use: 0, queued: 3 });
  expect((await strict.stats()).total).toBe(2);
  await change('POST', `/groups/${group}/resume`);
  await untilInFlight(2);
  await finish([...calls.slice(2), late]);
  const { arrivals, peak } = await strict.stats();
  expect(
    arrivals
      .slice(0, 4)
      .map(({ label }) => label)
      .toSorted((a, b) => (a ?? '').localeCompare(b ?? '')),
  ).toEqual(['a', 'b', 'c', 'd']);
  expect({ last: arrivals[4]?.label, peak }).toEqual({ last: 'late', peak: 2 });
});

it('calls that wait in a group that is deleted go another way and keep their age', async () => {
  const wide = `${group}-wide`;
  await configure({
    upstreams: [{ id: 'up', base_url: strict.url }],
    groups: [groupOf(group, 1, { models: ['narrow'] }), groupOf(wide, 2)],
  });
  const ask = (label: string, model: string) =>
    open(CHAT, label, {
      json: { model, stream: true, messages: [{ role: 'user', content: label }] },
    });
  // A call for the model takes a slot of either group.
  const calls = [ask('narrow-0', 'narrow')];
  await untilStatus(group, { in_use: 1 });
  await untilStatus(wide, { in_use: 1 });
  await untilInFlight(1);
  calls.push(ask('wide-0', 'wide'));
  await untilStatus(wide, { in_use: 2 });
  await untilInFlight(2);
  for (let at = 1; at < 4; at += 1) {
    calls.push(ask(`narrow-${at}`, 'narrow'));
    await untilStatus(group, { in_use: 1, queued: at });
  }
  calls.push(ask('wide-younger', 'wide'));
  await untilStatus(wide, { in_use: 2, queued: 1 });
  await change('DELETE', `/groups/${group}`);
  await untilStatus(wide, { in_use: 2, queued: 4 });
  expect(await pool(group).status()).toMatchObject({ in_use: 1, queued: 0 });
  // One after the other, so that their order is seen.
  await strict.configure({ silentAfterChunks: null });
  calls[0]?.leave();
  expect(await Promise.all(calls.slice(2).map(({ end }) => end))).toEqual(
    calls.slice(2).map(() => 'done'),
  );
  await finish(calls.slice(1, 2));
  await untilStatus(wide, { in_use: 0, queued: 0 });
  const { arrivals, peak } = await strict.stats();
  expect(arrivals.map(({ label }) => label)).toEqual([
    'narrow-0',
    'wide-0',
    'narrow-1',
    'narrow-2',
    'narrow-3',
    'wide-younger',
  ]);
  expect(peak).toBe(2);
  await untilWrittenEmpty(group);
});

it('a new group takes the waiters of an automatic one over, whose leases stay where they were taken', async () => {
  const auto = 'auto:moonshot';
  await configure({ upstreams: [{ id: 'moonshot', base_url: strict.url }] });
  const path = '/moonshot/v1/chat/completions';
  // Changes are pushed to pools that had a success: they are listed.
  await strict.configure({ silentAfterChunks: null });
  await (await chat(path, 'first')).text();
  await until(async () => {
    const { json } = await admin('GET', '/groups/auto%3Amoonshot/status');
    expect(json).toMatchObject({ limit: { effective: 1, source: 'built_in' }, in_use: 0 });
  });
  await strict.configure({ silentAfterChunks: 1 });
  const calls: WorkerOpenCall[] = [];
  for (let at = 0; at < 4; at += 1) {
    calls.push(open(path, `c${at}`));
    await untilStatus(auto, { in_use: 1, queued: at });
  }
  await untilInFlight(1);
  expect((await strict.stats()).peak).toBe(1);
  const { holds, limits } = groupOf(group, 2);
  await change('PUT', `/groups/${group}`, { match: { upstreams: ['moonshot'] }, limits, holds });
  await untilStatus(group, { in_use: 2, queued: 1 });
  await untilStatus(auto, { in_use: 1, queued: 0 });
  await untilInFlight(3);
  await finish(calls);
  const { arrivals, peak } = await strict.stats();
  expect(peak).toBe(3);
  expect(arrivals.at(-1)?.label).toBe('c3');
  const answer = await chat(path, 'new');
  expect(answer.headers.get('headgate-groups')).toBe(group);
  await answer.text();
});

it('a call that waits to be sent again is found by its model once a group goes by that', async () => {
  strict = await strictScope('again');
  await configureLimit(1);
  await strict.failNext('requests');
  const waiting = open(CHAT, 'waiting');
  await untilStatus(group, { queued: 1 });
  const moved = [groupOf(`${group}-m`, 1, { upstreams: ['up'], models: ['gpt-4o-mini'] })];
  await configure({ upstreams: [{ id: 'up', base_url: strict.url }], groups: moved });
  const { status, headers } = await waiting.response;
  expect([status, headers.get('headgate-groups')]).toEqual([200, `${group}-m`]);
  await waiting.end;
});
