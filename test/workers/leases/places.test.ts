// Where leases belong: several groups, members, keys and their limits, automatic groups, and what is counted of them; and what
// is reported of their calls.
import { afterAll, expect, it } from 'vitest';
import { crashPool, nothingLeaks, pool, untilStatus } from '../support/pool.ts';
import { gatewayKeyHash } from '../../../src/runtime/secrets.ts';
import { configure } from '../support/worker.ts';
import { del, group, leased, leave, limitTo, patch, post, put, queued } from './scene.ts';

afterAll(nothingLeaks);

const ANN = { 'headgate-key': 'hg_ann-key-0000000000000000000000' };
const BOB = { 'headgate-key': 'hg_bob-key-0000000000000000000000' };

async function key(id: string, { 'headgate-key': secret }: typeof ANN, more: object = {}) {
  return { id, hash: await gatewayKeyHash(secret), ...more };
}

it('holds slots in every group that its upstream and model lead to, and gives all back', async () => {
  await limitTo([
    group('wide', 2),
    group('of-model', 2, { match: { upstreams: ['up'], models: ['glm-*'] } }),
    group('chats', 2, { match: { operations: ['chat'] } }),
    group('only-leases', 2, { match: { operations: ['lease'] } }),
  ]);
  const lease = await leased({ upstream: 'up', model: 'GLM-5' });
  expect(lease.groups).toEqual(['of-model', 'only-leases', 'wide']);
  expect(lease.lease_ids).toHaveLength(3);
  expect(await put(lease.lease)).toMatchObject({ status: 200 });
  for (const name of lease.groups) expect(await pool(name).status()).toMatchObject({ in_use: 1 });
  expect(await del(lease.lease)).toMatchObject({ status: 204 });
  for (const name of lease.groups) expect(await pool(name).status()).toMatchObject({ in_use: 0 });
});

it('waits for the wide group over several requests, and holds nothing meanwhile', async () => {
  const match = { upstreams: ['up'], models: ['m'] };
  await limitTo([group('narrow', 1, { match }), group('full', 1)]);
  const held = await leased({ group: 'full' });
  const wanted = { upstream: 'up', model: 'm' };
  const { ticket } = await queued(wanted);
  await untilStatus('narrow', { in_use: 0, queued: 0 });
  const other = await queued({ group: 'full' });
  const again = await queued({ ...wanted, ticket });
  await untilStatus('narrow', { in_use: 0, queued: 0 });
  await del(held.lease);
  const lease = await leased({ ...wanted, ticket: again.ticket });
  expect(lease.groups).toEqual(['narrow', 'full']);
  expect(await pool('narrow').status()).toMatchObject({ in_use: 1 });
  await del(lease.lease);
  // It has kept its place in the queue.
  await del((await leased({ group: 'full', ticket: other.ticket })).lease);
  for (const name of ['narrow', 'full']) await untilStatus(name, { in_use: 0, queued: 0 });
});

it('waits holding nothing for the end of a pause of the wide group', async () => {
  const match = { upstreams: ['up'], models: ['m'] };
  const narrow = group('pause-narrow', 1, { match });
  await limitTo([narrow, group('pause-wide', 1, { paused: true })]);
  const wanted = { upstream: 'up', model: 'm' };
  const { ticket } = await queued(wanted);
  await untilStatus('pause-narrow', { in_use: 0 });
  await limitTo([narrow, group('pause-wide', 1)]);
  const lease = await leased({ ...wanted, ticket });
  expect(lease.groups).toEqual(['pause-narrow', 'pause-wide']);
  await del(lease.lease);
});

it('is at a member, by name, and at another one once that has refused it', async () => {
  const at = (id: string) => ({ name: `at-${id}`, upstream: id });
  await configure({
    leases: 'open',
    upstreams: ['ma', 'mb'].map((id) => ({ id, base_url: `https://${id}.test` })),
    groups: [
      group('members', 10, {
        members: [
          { ...at('ma'), limits: { max_concurrency: 1 } },
          { ...at('mb'), limits: { max_concurrency: 1 } },
        ],
      }),
    ],
  });
  const one = await leased({ group: 'members' });
  const two = await leased({ group: 'members' });
  expect(new Set([one.member, two.member])).toEqual(new Set(['at-ma', 'at-mb']));
  await del(two.lease);
  const refused = await patch(one.lease, { status: 429, headers: { 'retry-after': '1' } });
  expect(refused.body).toMatchObject({ action: 'again', ticket: expect.any(String) });
  const next = await leased({ group: 'members', ticket: refused.body.ticket ?? '' });
  expect(next.member).toBe(two.member);
  await del(next.lease);
});

it('keys open it as they open calls: their groups, their limits, and no other’s leases', async () => {
  await configure({
    upstreams: [{ id: 'up', base_url: 'https://up.test' }],
    groups: [group('of-ann', 5, { match: { upstreams: ['up'] } }), group('all', 5)],
    keys: [
      await key('ann', ANN, {
        groups: ['of-ann'],
        allow: ['lease'],
        limits: { max_concurrency: 1 },
      }),
      await key('bob', BOB, { groups: ['other'], allow: ['lease'] }),
    ],
  });
  expect(await post({ group: 'of-ann' })).toMatchObject({ status: 401, reason: 'key_missing' });
  const wrong = { 'headgate-key': 'hg_nobody-0000000000000000000000' };
  expect(await post({ group: 'of-ann' }, wrong)).toMatchObject({ reason: 'key_invalid' });
  expect(await post({ group: 'of-ann' }, BOB)).toMatchObject({ status: 403 });
  expect(await post({ upstream: 'up' }, BOB)).toMatchObject({ reason: 'key_forbidden' });
  // It comes on top of calls to other groups. By its name it is one of its own.
  expect(await post({ group: 'all' }, BOB)).toMatchObject({ reason: 'key_forbidden' });
  const lease = await leased({ group: 'of-ann' }, ANN);
  expect(lease.groups).toEqual(['key:ann', 'of-ann']);
  expect(await post({ group: 'of-ann', max_wait_ms: 0 }, ANN)).toMatchObject({ reason: 'busy' });
  const { ticket } = await queued({ group: 'of-ann' }, ANN);
  for (const answer of [
    await put(lease.lease, BOB),
    await patch(lease.lease, { status: 429 }, BOB),
    await del(lease.lease, undefined, BOB),
    await leave(ticket, BOB),
    await post({ group: 'all', ticket }, BOB),
  ]) {
    expect(answer).toMatchObject({ status: 404, reason: 'lease_unknown' });
  }
  expect(await put(lease.lease)).toMatchObject({ status: 401 });
  expect(await leave(ticket, ANN)).toMatchObject({ status: 204 });
  expect(await del(lease.lease, undefined, ANN)).toMatchObject({ status: 204 });
});

it('the same name of two callers is two leases', async () => {
  await configure({
    upstreams: [],
    groups: [group('names', 2)],
    keys: [await key('ann', ANN, { allow: ['*'] }), await key('bob', BOB, { allow: ['lease'] })],
  });
  const name = { 'idempotency-key': 'job' };
  const one = await leased({ group: 'names' }, { ...ANN, ...name });
  const two = await leased({ group: 'names' }, { ...BOB, ...name });
  expect(one.lease_ids).not.toEqual(two.lease_ids);
  await del(one.lease, undefined, ANN);
  await del(two.lease, undefined, BOB);
});

it('what it was first asked with is what it holds, whatever it is asked for again with', async () => {
  await limitTo([group('asked', 4, { limits: { max_concurrency: 4, max_weight: 4 } })]);
  const name = { 'idempotency-key': 'one' };
  const one = await leased({ group: 'asked' }, name);
  const others = [await leased({ group: 'asked' }), await leased({ group: 'asked' })];
  const more = await leased({ group: 'asked' }, { ...name, 'headgate-weight': '1' });
  expect(more.lease_ids).toEqual(one.lease_ids);
  const wide = await post({ group: 'asked', slots: 5 });
  expect(wide.status).toBe(413);
  expect(JSON.stringify(wide.body)).toMatch(/asks for more than 4 slots of group `asked`.*`slots`/);
  const full = await leased({ group: 'asked' });
  const { ticket } = await queued({ group: 'asked' });
  await del(full.lease);
  const asked = await leased({ group: 'asked', ticket, slots: 3 });
  expect(await pool('asked').status()).toMatchObject({ in_use: 4 });
  // Nor does it take from the others what is theirs, where the pool knows nobody any more.
  await crashPool('asked');
  for (const { lease } of [asked, one, ...others]) {
    expect(await put(lease)).toMatchObject({ status: 200 });
  }
  expect(await pool('asked').status()).toMatchObject({ in_use: 4, unclaimed: 0 });
  for (const { lease } of [asked, one, ...others]) await del(lease);
  // Another number of slots is another lease, be it said in the body or in a header.
  const first = await leased({ group: 'asked' }, { 'idempotency-key': 'two' });
  const second = await leased(
    { group: 'asked' },
    { 'idempotency-key': 'two', 'headgate-weight': '2' },
  );
  expect(second.lease_ids).not.toEqual(first.lease_ids);
  for (const { lease } of [first, second]) await del(lease);
});

it('an automatic group takes it as it takes calls', async () => {
  await limitTo([], { upstreams: [{ id: 'auto-up', base_url: 'https://auto-up.test' }] });
  const lease = await leased({ upstream: 'auto-up' }, { authorization: 'Bearer sk-own' });
  expect(lease.groups).toEqual(['auto:auto-up']);
  expect(await put(lease.lease, { authorization: 'Bearer sk-own' })).toMatchObject({ status: 200 });
  expect(await put(lease.lease, { authorization: 'Bearer sk-other' })).toMatchObject({
    status: 404,
  });
  await del(lease.lease, undefined, { authorization: 'Bearer sk-own' });
});

it('what the provider said is heard as of a call: it pauses the group, and the call asks again with its age', async () => {
  await limitTo([group('told', 2, { match: { upstreams: ['up'] } })]);
  const lease = await leased({ upstream: 'up' });
  const again = await patch(lease.lease, {
    status: 429,
    headers: { 'retry-after': '2' },
    error: { error: { message: 'Rate limit reached for requests', code: 'rate_limit_exceeded' } },
  });
  expect(again.body).toMatchObject({ action: 'again' });
  const status = await pool('told').status();
  expect(status).toMatchObject({ in_use: 0 });
  expect(Date.parse(status.paused_until ?? '')).toBeGreaterThan(Date.now());
  expect(await put(lease.lease)).toMatchObject({ status: 410 });
  const waiting = await queued({ upstream: 'up', ticket: again.body.ticket ?? '' });
  expect(await pool('told').waiters()).toMatchObject([{ ticket: expect.any(String) }]);
  await leave(waiting.ticket);
});

it('a report of a mistake, or of a success, lets it go on', async () => {
  await limitTo([group('mistakes', 1, { match: { upstreams: ['up'] } })]);
  const lease = await leased({ upstream: 'up' });
  for (const reported of [
    { status: 200 },
    { status: 400, error: 'no such model' },
    { status: 204 },
    { status: 101 },
  ]) {
    expect((await patch(lease.lease, reported)).body).toEqual({ action: 'go_on', after_ms: 0 });
  }
  expect(await patch(lease.lease, {})).toMatchObject({ status: 400, reason: 'field_invalid' });
  expect(await del(lease.lease)).toMatchObject({ status: 204 });
});

it('what no wait helps against stops the call', async () => {
  await limitTo([group('stopped', 1, { match: { upstreams: ['up'] } })]);
  const lease = await leased({ upstream: 'up' });
  const error = {
    error: { code: 'insufficient_quota', message: 'You exceeded your current quota' },
  };
  expect((await patch(lease.lease, { status: 429, error })).body).toMatchObject({ action: 'stop' });
  expect(await pool('stopped').status()).toMatchObject({ in_use: 0 });
  await pool('stopped').relearn();
  const other = await leased({ upstream: 'up', max_wait_ms: 0 });
  // One that does not want to wait is not asked to.
  expect((await patch(other.lease, { error: 'socket hang up' })).body).toMatchObject({
    action: 'stop',
  });
});
