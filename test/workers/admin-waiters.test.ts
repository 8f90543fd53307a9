// Waiters over the admin API, with real groups that calls really wait in.
import { beforeEach, describe, expect, it } from 'vitest';
import { directoryOf } from '../../src/env.ts';
import type { AcquireAnswer } from '../../src/contract/rpc/group-rpc.ts';
import type { WaiterInfo } from '../../src/contract/status.ts';
import { poolOf } from '../../src/routing/pool.ts';
import { acquireRequest, type RequestFields } from '../support/requests.ts';
import { strictScope } from './support/strict.ts';
import { admin, chat, configure, env, until } from './support/worker.ts';

/** Asks for a slot as a Worker would. */
async function acquire(
  group: string,
  ticketId: string,
  more: RequestFields = {},
): Promise<AcquireAnswer> {
  const configVersion = (await directoryOf(env).snapshot(null))?.version ?? 0;
  const { partition = null, caller = 'acme' } = more;
  const request = acquireRequest(group, ticketId, { ...more, configVersion, caller });
  return poolOf(env, group, partition, null).acquire(request);
}

async function waiters(group: string): Promise<(WaiterInfo & { partition: string | null })[]> {
  return (await admin('GET', `/groups/${group}/waiters`)).json.waiters;
}

async function tickets(group: string): Promise<string[]> {
  return (await waiters(group)).map(({ ticket }) => ticket);
}

/** Lets tickets queue up, one after the other. */
async function queueUp(
  group: string,
  asks: readonly (readonly [ticket: string, more?: RequestFields])[],
): Promise<Map<string, Promise<AcquireAnswer>>> {
  const parked = new Map<string, Promise<AcquireAnswer>>();
  for (const [ticket, more] of asks) {
    parked.set(ticket, acquire(group, ticket, more));
    await until(async () => expect(await tickets(group)).toContain(ticket));
  }
  return parked;
}

/** Takes everybody out who waits, so that no ask outlives its test. */
async function end(group: string, parked: Map<string, Promise<AcquireAnswer>>): Promise<void> {
  for (const ticket of parked.keys()) await admin('DELETE', `/groups/${group}/waiters/${ticket}`);
  await Promise.all(parked.values());
}

async function lastNote(): Promise<string> {
  return (await admin('GET', '/audit?limit=1')).json.entries[0].action;
}

beforeEach(async () => {
  await admin('PUT', '/config', {});
});

describe('waiters', () => {
  it('are listed in the order in which they will be granted', async () => {
    await admin('PUT', '/groups/line', {
      limits: { max_concurrency: 1 },
      fairness: { by: ['caller'] },
    });
    const holder = await acquire('line', 'holder');
    const parked = await queueUp('line', [
      ['low', { lane: 'low' }],
      ['acme-1', {}],
      ['acme-2', { agent: 'run-1' }],
      ['bolt-1', { caller: 'bolt', slots: 1 }],
      ['high', { lane: 'high', caller: 'bolt' }],
    ]);
    const listed = await waiters('line');
    expect(listed.map(({ ticket }) => ticket)).toEqual([
      'high',
      'acme-1',
      'acme-2',
      'bolt-1',
      'low',
    ]);
    expect(listed.map(({ position }) => position)).toEqual([0, 1, 2, 3, 4]);
    expect(listed[2]).toMatchObject({
      lane: 'normal',
      tenant: 'acme',
      agent: 'run-1',
      slots: 1,
      partition: null,
      promoted: false,
      // No call has ended yet.
      estimate_ms: null,
      waits_for: 'slots',
      waited_ms: expect.any(Number),
    });
    expect((await admin('GET', '/groups/line/status')).json).toMatchObject({
      queued: 5,
      queued_by_lane: { high: 1, normal: 3, low: 1 },
    });
    await end('line', parked);
    if (holder.kind === 'granted') await holder.lease.release('unused', null);
  });

  it('of all partitions are listed', async () => {
    await admin('PUT', '/groups/split', {
      partition_by: ['caller'],
      limits: { max_concurrency: 0 },
    });
    for (const partition of ['one', 'two']) {
      await directoryOf(env).list({ group: 'split', partition });
    }
    const parked = await queueUp('split', [
      ['first', { partition: 'one' }],
      ['second', { partition: 'two' }],
    ]);
    expect(await waiters('split')).toMatchObject([
      { ticket: 'first', partition: 'one', position: 0 },
      { ticket: 'second', partition: 'two', position: 0 },
    ]);
    await end('split', parked);
  });

  it('are cancelled, and their caller is told so', async () => {
    await admin('PUT', '/groups/cancels', { limits: { max_concurrency: 0 } });
    const parked = await queueUp('cancels', [['out'], ['stays']]);
    const { status, json } = await admin('DELETE', '/groups/cancels/waiters/out');
    expect([status, json]).toEqual([200, { ticket: 'out', state: 'cancelled' }]);
    const cancelled = { kind: 'rejected', rejection: { reason: 'cancelled' } };
    expect(await parked.get('out')).toMatchObject(cancelled);
    expect(await lastNote()).toBe('group cancels: cancel waiter out');
    // An ask that was on its way back hears the same.
    expect(await acquire('cancels', 'out')).toMatchObject(cancelled);
    expect(await tickets('cancels')).toEqual(['stays']);
    await admin('DELETE', '/groups/cancels/waiters/stays');
    await parked.get('stays');
  });

  it('that were granted meanwhile cannot be cancelled, and keep their slot', async () => {
    await admin('PUT', '/groups/granted', { limits: { max_concurrency: 1 } });
    const held = await acquire('granted', 'held');
    expect((await admin('DELETE', '/groups/granted/waiters/held')).status).toBe(404);
    expect((await admin('GET', '/groups/granted/status')).json.in_use).toBe(1);
    if (held.kind === 'granted') await held.lease.release('unused', null);
  });

  it.each<[string, object | undefined, string[], object]>([
    ['first, without a body', undefined, ['c', 'a', 'b', 'd'], { lane: null, first: true }],
    ['first', { first: true }, ['c', 'a', 'b', 'd'], { lane: null, first: true }],
    ['into a lane', { lane: 'high' }, ['c', 'a', 'b', 'd'], { lane: 'high', first: false }],
    ['down', { lane: 'low' }, ['a', 'b', 'd', 'c'], { lane: 'low', first: false }],
    ['both', { lane: 'low', first: true }, ['c', 'a', 'b', 'd'], { lane: 'low', first: true }],
  ])('are promoted: %s', async (title, body, order, answer) => {
    const group = `promote-${title.replaceAll(/[^a-z]/g, '-')}`;
    await admin('PUT', `/groups/${group}`, { limits: { max_concurrency: 0 } });
    const parked = await queueUp(group, [['a'], ['b'], ['c'], ['d']]);
    const { status, json } = await admin('POST', `/groups/${group}/waiters/c/promote`, body);
    expect([status, json]).toEqual([200, { ticket: 'c', ...answer }]);
    expect(await tickets(group)).toEqual(order);
    expect(await lastNote()).toMatch(/: promote waiter c (first|to lane|first to lane)/);
    await end(group, parked);
  });

  it.each<[string, string, unknown, number]>([
    ['DELETE', '/groups/line/waiters/nobody', undefined, 404],
    ['POST', '/groups/line/waiters/nobody/promote', {}, 404],
    ['POST', '/groups/line/waiters/nobody/promote', { lane: 'best' }, 422],
    ['POST', '/groups/line/waiters/nobody/promote', { front: true }, 422],
    ['GET', '/groups/none/waiters', undefined, 404],
    ['GET', '/groups/line/waiters/nobody', undefined, 405],
  ])('are a problem: %s %s %j', async (method, path, body, status) => {
    await admin('PUT', '/groups/line', {});
    expect((await admin(method, path, body)).json).toMatchObject({ status });
  });
});

describe('a group', () => {
  it('that is drained refuses new calls and lets those that wait go on', async () => {
    await admin('PUT', '/groups/drained', { limits: { max_concurrency: 1 } });
    const held = await acquire('drained', 'held');
    const parked = await queueUp('drained', [['waits']]);
    await admin('POST', '/groups/drained/drain');
    // Whoever comes before its pool has heard of it still waits.
    await until(async () =>
      expect(await poolOf(env, 'drained', null, null).status()).toMatchObject({ draining: true }),
    );
    expect(await acquire('drained', 'late')).toMatchObject({ rejection: { reason: 'draining' } });
    if (held.kind === 'granted') await held.lease.release('unused', null);
    const waited = await parked.get('waits');
    expect(waited).toMatchObject({ kind: 'granted' });
    if (waited?.kind === 'granted') await waited.lease.release('unused', null);
    expect((await admin('GET', '/groups/drained/status')).json.draining).toBe(true);
    await admin('POST', '/groups/drained/resume');
    const again = await acquire('drained', 'again');
    expect(again.kind).toBe('granted');
    if (again.kind === 'granted') await again.lease.release('unused', null);
  });

  it('that runs dry lets everything pass and counts what would have waited', async () => {
    await admin('PUT', '/groups/dry', { limits: { max_concurrency: 1 }, dry_run: true });
    const answers = [await acquire('dry', 'one'), await acquire('dry', 'two')];
    expect(answers.map(({ kind }) => kind)).toEqual(['granted', 'granted']);
    const { json } = await admin('GET', '/groups/dry/status');
    expect(json).toMatchObject({ in_use: 2, would_wait_total: 1, dry_run: true });
    for (const one of answers) {
      if (one.kind === 'granted') await one.lease.release('unused', null);
    }
  });
});

describe('over the wire', () => {
  it('a call that is taken out of the queue is refused for good, and holds nothing elsewhere', async () => {
    const strict = await strictScope('cancelled');
    await configure({
      upstreams: [{ id: 'wired', base_url: strict.url }],
      groups: [
        { name: 'narrow', match: { models: ['gpt-*'] }, limits: { max_concurrency: 8 } },
        { name: 'wide', match: { upstreams: ['wired'] }, limits: { max_concurrency: 0 } },
      ],
    });
    const answer = chat('/wired/v1/chat/completions', 'waits');
    await until(async () => expect(await tickets('wide')).toHaveLength(1));
    const inUse = async () => (await admin('GET', '/groups/narrow/status')).json.in_use;
    await until(async () => expect(await inUse()).toBe(0));
    const [ticket = ''] = await tickets('wide');
    expect((await admin('DELETE', `/groups/wide/waiters/${ticket}`)).status).toBe(200);
    const response = await answer;
    expect(response.status).toBe(409);
    expect(response.headers.get('headgate-reason')).toBe('cancelled');
    expect(response.headers.get('x-should-retry')).toBe('false');
    expect((await response.json<{ error: { message: string } }>()).error.message).toContain('wide');
    expect(await inUse()).toBe(0);
    expect((await strict.stats()).total).toBe(0);
  });

  it('are kept with no more of a model than a name can have, wherever it stood', async () => {
    const strict = await strictScope('waiters');
    await configure({
      upstreams: [{ id: 'wired', base_url: strict.url, dialect: 'gemini' }],
      groups: [{ name: 'wide', match: { upstreams: ['wired'] }, limits: { max_concurrency: 0 } }],
    });
    const long = 'm'.repeat(5_000);
    const answers = [
      chat('/wired/v1/chat/completions', 'named', { headers: { 'headgate-model': long } }),
      chat(`/wired/v1beta/models/${long}:generateContent`, 'in the path'),
    ];
    await until(async () => expect(await waiters('wide')).toHaveLength(2));
    for (const { ticket, model } of await waiters('wide')) {
      expect(model).toBe('m'.repeat(1_024));
      await admin('DELETE', `/groups/wide/waiters/${ticket}`);
    }
    for (const answer of answers) await (await answer).text();
  });
});
