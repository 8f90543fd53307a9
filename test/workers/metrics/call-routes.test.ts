/** Calls of all groups over the admin API: by whatever name somebody has, from calls through the Worker. */
import { beforeAll, describe, expect, it } from 'vitest';
import { callsSchema } from '../../../src/admin/resources/calls.ts';
import { POOL_IDLE_MS } from '../../../src/contract/rpc/group-rpc.ts';
import { SERVED } from '../../../src/core/words/signal.ts';
import { directoryOf } from '../../../src/env.ts';
import { crashPool, NO_COOLDOWN, pool, request, take, untilWrittenEmpty } from '../support/pool.ts';
import { strictScope } from '../support/strict.ts';
import { passTime } from '../support/time.ts';
import { admin, chat, configure, env, until } from '../support/worker.ts';

const DAY_MS = 86_400_000;

beforeAll(async () => {
  const strict = await strictScope('looked-up', { limit: 5 });
  const group = (name: string, more: object = {}) => ({
    name,
    match: { upstreams: [name] },
    limits: { max_concurrency: 3 },
    holds: NO_COOLDOWN,
    log: { sample: 1 },
    ...more,
  });
  await configure({
    upstreams: [{ id: 'practice', base_url: strict.url, dialect: 'openai' }],
    groups: [
      group('practice'),
      group('also', { match: { models: ['gpt-*'], upstreams: ['practice'] } }),
      group('split', { match: { upstreams: ['openai'] }, partition_by: ['caller'] }),
      group('full', { match: { upstreams: ['groq'] } }),
      group('unused', { match: { upstreams: ['mistral'] } }),
    ],
  });
});

async function search(query: string) {
  const { status, json } = await admin('GET', `/calls?${query}`);
  expect([query, status]).toEqual([query, 200]);
  return callsSchema.parse(json);
}

describe('one search', () => {
  it('finds a call in all its groups by the header of its answer, and by what the upstream calls it', async () => {
    const answer = await chat('/practice/v1/chat/completions', 'mine', {
      headers: { authorization: 'Bearer sk-practice', 'headgate-agent': 'run-1' },
    });
    await answer.arrayBuffer();
    const header = answer.headers.get('headgate-lease') ?? '';
    const requestId = answer.headers.get('x-request-id') ?? '';
    expect(requestId).not.toBe('');
    for (const name of [header, requestId, 'run-1', 'gpt-4o-mini']) {
      await until(async () => {
        const { calls } = await search(`q=${encodeURIComponent(name)}`);
        expect(calls.map((call) => call.group).toSorted()).toEqual(['also', 'practice']);
        for (const call of calls) {
          expect(call).toMatchObject({
            agent: 'run-1',
            model: 'gpt-4o-mini',
            upstream: 'practice',
            outcome: 'success',
            upstream_status: 200,
            upstream_request_id: requestId,
            sent: 1,
            partition: null,
          });
        }
      });
    }
    expect((await search(`q=${encodeURIComponent(header)}&group=also`)).calls).toHaveLength(1);
  });

  it('never has a key, nor what was asked', async () => {
    const { json } = await admin('GET', '/calls');
    expect(json.calls.length).toBeGreaterThan(0);
    expect(JSON.stringify(json)).not.toContain('sk-practice');
    expect(JSON.stringify(json)).not.toContain('"mine"');
  });

  it('joins all pools, the latest first, in pages of which none tells a call twice', async () => {
    for (let round = 0; round < 5; round += 1) {
      for (const partition of ['one', 'two']) {
        await directoryOf(env).list({ group: 'split', partition });
        const name = `split#${partition}`;
        const asked = request('split', `${partition}-${round}`, { partition, caller: partition });
        const granted = await pool(name).acquire(asked);
        if (granted.kind !== 'granted') throw new Error(granted.kind);
        await granted.lease.release('success', 200);
        passTime(10);
      }
    }
    const seen: string[] = [];
    let cursor: string | null = '';
    for (let pages = 0; cursor !== null && pages < 20; pages += 1) {
      const more: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const page = await search(`group=split&limit=3${more}`);
      expect(page.calls.length).toBeLessThanOrEqual(4);
      seen.push(...page.calls.map(({ lease }) => lease));
      cursor = page.next_cursor;
    }
    expect(seen).toHaveLength(10);
    expect(new Set(seen).size).toBe(10);
    expect(seen[0]).toBe('two-4.1');
    expect(seen.at(-1)).toBe('one-0.1');
    const { calls } = await search('key=two&outcome=success');
    expect(new Set(calls.map(({ partition }) => partition))).toEqual(new Set(['two']));
  });

  it('finds what a pool has that was idle for long and left the list', async () => {
    for (const partition of ['one', 'two']) await untilWrittenEmpty(`split#${partition}`);
    const before = await search('q=one-3');
    expect(before.calls).toHaveLength(1);
    passTime(POOL_IDLE_MS + 60_000);
    for (const partition of ['one', 'two']) {
      expect(await pool(`split#${partition}`).forget(null)).toBe(true);
    }
    expect(await directoryOf(env).pools()).toEqual(
      expect.not.arrayContaining([expect.objectContaining({ group: 'split' })]),
    );
    const { calls, pools } = await search('q=one-3');
    expect(calls.map(({ lease }) => lease)).toEqual(['one-3.1']);
    expect(pools.left_out).toBe(0);
  });

  it('asks no pool that has rested since before, and none that was never used', async () => {
    const three = { group: 'split', partition: 'three', jurisdiction: null };
    await directoryOf(env).list(three);
    const idleMs = 3 * DAY_MS;
    const said = JSON.stringify({ at: Date.now(), metrics: { status: { idle_ms: idleMs } } });
    await directoryOf(env).rest({ ...three, window: Date.now() + DAY_MS, idleMs, said });
    const since = (days: number) => `group=split&tenant=nobody&from=${Date.now() - days * DAY_MS}`;
    const early = (await search(since(4))).pools.asked;
    expect((await search(since(2))).pools.asked).toBe(early - 1);
    expect((await search('group=unused')).pools.asked).toBe(0);
  });

  it('goes on telling after a reset', async () => {
    const { lease } = await take('full', 'refused', { agent: 'unlucky' });
    await lease.report({ ...SERVED, kind: 'unknown' }, false);
    await lease.release('refused', 400, undefined, true, { requestId: 'req_lost' });
    await untilWrittenEmpty('full');
    await crashPool('full');
    const { calls } = await search('request_id=req_lost');
    expect(calls).toMatchObject([{ group: 'full', agent: 'unlucky', kept_for: 'refused' }]);
  });

  it.each(['tenant=nobody', 'group=unused', 'q=%25', "q=' OR 1=1 --", 'lease=a,b,c'])(
    'finds nothing where there is nothing: %s',
    async (query) => {
      expect(await search(query)).toMatchObject({ calls: [], next_cursor: null, unreachable: [] });
    },
  );

  it.each([
    ['limit=0', 'limit'],
    ['limit=501', 'limit'],
    ['outcome=granted', 'outcome'],
    ['from=yesterday', 'from'],
    ['from=2000000000000&to=1000000000000', 'from'],
    ['cursor=abc', 'cursor'],
    ['q=', 'q'],
    [`tenant=${'x'.repeat(501)}`, 'tenant'],
    ['group=none', 'group'],
    ['what=ever', 'what'],
  ])('cannot be asked with %s', async (query, path) => {
    const { status, json } = await admin('GET', `/calls?${query}`);
    expect([status, json.errors[0].path]).toEqual([422, path]);
  });
});
