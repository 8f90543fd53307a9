// Several requests for one lease at once: each ends or waits without a retry loop, and together they get one lease, even if
// an operator pauses and resumes a group meanwhile.
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { SUPERSEDED_ASK_AGAIN_MS } from '../../../src/core/words/settings.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import { crashPool, nothingLeaks, pool, resetPool, take, untilStatus } from '../support/pool.ts';
import { until } from '../support/worker.ts';
import { del, group, leased, limitTo, post, queued } from './scene.ts';

afterEach(() => vi.restoreAllMocks());
afterAll(nothingLeaks);

/** Counts acquire calls by group. */
function countAsks(): (group: string) => number {
  const asks = vi.spyOn(GroupObject.prototype, 'acquire');
  return (name) => asks.mock.calls.filter(([asked]) => asked.group === name).length;
}

/** Two groups that a lease for the model `m` needs, narrow first. */
function twoGroups(name: string, wide: object = {}) {
  const match = { upstreams: ['up'], models: ['m'] };
  return [group(`${name}-narrow`, 1, { match }), group(`${name}-wide`, 1, wide)];
}

const WANTED = { upstream: 'up', model: 'm' };

it.each([2, 5])('%i equal requests wait as one, and do not affect others', async (copies) => {
  const name = `equal-${copies}`;
  await limitTo([group(name, 1), group('others', 1)]);
  const held = await leased({ group: name });
  const asksOf = countAsks();
  const same = { 'idempotency-key': 'same' };
  const answers = Array.from({ length: copies }, () => post({ group: name }, same));
  // Only one of them continues to wait. The others learn when to retry.
  let superseded = 0;
  for (const answer of answers) {
    answer.then(({ status }) => (superseded += Number(status === 202))).catch(() => {});
  }
  await until(() => expect(superseded).toBe(copies - 1));
  for (let call = 0; call < 50; call += 1) await del((await leased({ group: 'others' })).lease);
  expect(asksOf('others')).toBe(50);
  // A waiting request retries before its slice ends, like any call.
  expect(asksOf(name)).toBeLessThan(copies + 10);
  expect(await pool(name).status()).toMatchObject({ queued: 1 });
  await del(held.lease);
  const reported = await Promise.all(answers);
  const granted = reported.filter(({ status }) => status === 201);
  expect(granted).toHaveLength(1);
  for (const { status, body, headers } of reported) {
    if (status !== 202) continue;
    expect(body.retry_after_ms).toBe(SUPERSEDED_ASK_AGAIN_MS);
    expect(headers.get('retry-after')).toBe('3');
    const again = await leased({ group: name, ticket: body.ticket });
    expect(again.lease_ids).toEqual(granted[0]?.body.lease_ids);
  }
  expect(await pool(name).status()).toMatchObject({ in_use: 1, granted_total: 2 });
  await del(granted[0]?.body.lease ?? '');
});

it('a newer request with the ticket supersedes the waiting one', async () => {
  await limitTo([group('newer', 1)]);
  const held = await leased({ group: 'newer' });
  const { ticket } = await queued({ group: 'newer' });
  const asksOf = countAsks();
  const older = post({ group: 'newer', ticket });
  await until(() => expect(asksOf('newer')).toBe(1));
  const newer = post({ group: 'newer', ticket });
  expect(await older).toMatchObject({ status: 202 });
  expect(asksOf('newer')).toBe(2);
  await del(held.lease);
  const { status, body } = await newer;
  expect(status).toBe(201);
  await del(body.lease);
});

it('a request that does not wait gets a pause before the next one', async () => {
  await limitTo([group('polls', 1)]);
  const held = await leased({ group: 'polls' });
  const asked = await queued({ group: 'polls' });
  expect(asked.retry_after_ms).toBeGreaterThan(500);
  expect(asked.retry_after_ms).toBeLessThanOrEqual(1_000);
  await pool('polls').dismissAll({}, false);
  await del(held.lease);
});

it('requests from before and during a pause get one lease when it ends', async () => {
  await limitTo(twoGroups('paused', { paused: true }));
  const same = { 'idempotency-key': 'paused' };
  const first = post(WANTED, same);
  const grants = async () => (await pool('paused-narrow').status()).granted_total;
  await until(async () => expect(await grants()).toBe(1));
  await untilStatus('paused-narrow', { in_use: 0 });
  const second = post(WANTED, same);
  await until(async () => expect(await grants()).toBe(2));
  await untilStatus('paused-narrow', { in_use: 0 });
  await limitTo(twoGroups('paused'));
  const leases = new Set<string>();
  for (const answer of await Promise.all([first, second])) {
    expect([201, 202]).toContain(answer.status);
    const { ticket } = answer.body;
    const had = answer.status === 201 ? answer.body : await leased({ ...WANTED, ticket });
    leases.add(had.lease_ids.join());
  }
  expect([...leases]).toHaveLength(1);
  expect(await pool('paused-wide').status()).toMatchObject({ in_use: 1 });
  const one = await leased(WANTED, same);
  expect([...leases]).toEqual([one.lease_ids.join()]);
  await del(one.lease);
  // The name is used up in all its groups.
  expect(await post(WANTED, same)).toMatchObject({ status: 410, reason: 'lease_gone' });
  for (const name of ['paused-narrow', 'paused-wide']) {
    expect(await pool(name).status()).toMatchObject({ in_use: 0 });
  }
});

it('two requests that return the narrow group of their lease at once free its slot', async () => {
  await limitTo([group('returned', 1)]);
  const fields = { isById: true, waitsElsewhere: true };
  const [one, other] = [
    await take('returned', 'same', fields),
    await take('returned', 'same', fields),
  ];
  expect(one.leaseId).toBe(other.leaseId);
  await one.lease.release('unused', null);
  // The other request still uses it.
  expect(await pool('returned').status()).toMatchObject({ in_use: 1 });
  await other.lease.release('unused', null);
  expect(await pool('returned').status()).toMatchObject({ in_use: 0 });
  for (const { lease } of [one, other]) lease[Symbol.dispose]();
});

it('equal requests get one lease, however often a group is paused and resumed meanwhile', async () => {
  const same = { 'idempotency-key': 'flaps' };
  await limitTo(twoGroups('flaps'));
  const held = await leased({ group: 'flaps-wide' });
  const asksOf = countAsks();
  const found = new Set<string>();
  const lost: string[] = [];
  let posts = 0;
  const ask = async (): Promise<void> => {
    for (let ticket: string | undefined; ;) {
      posts += 1;
      const answer = await post({ ...WANTED, ...(ticket !== undefined && { ticket }) }, same);
      if (answer.status === 201) {
        found.add(answer.body.lease_ids.join());
        return;
      }
      if (answer.status !== 202) lost.push(`${answer.status} ${answer.reason}`);
      ({ ticket } = answer.body);
    }
  };
  const asking = Promise.all(Array.from({ length: 4 }, ask));
  for (let flip = 0; flip < 6; flip += 1) {
    const before = asksOf('flaps-wide');
    await until(async () => expect(asksOf('flaps-wide')).toBeGreaterThan(before));
    await limitTo(twoGroups('flaps', { paused: flip % 2 === 0 }));
  }
  await del(held.lease);
  await asking;
  expect({ leases: found.size, lost }).toEqual({ leases: 1, lost: [] });
  // Two for each request: it tries the group, and waits there.
  expect(asksOf('flaps-wide')).toBeLessThan(3 * posts + 20);
  for (const name of ['flaps-narrow', 'flaps-wide']) {
    expect(await pool(name).status()).toMatchObject({ in_use: 1 });
  }
  await del((await leased(WANTED, same)).lease);
});

it.each([
  ['crash', crashPool],
  ['reset', resetPool],
])('survives a %s of the narrow group, which forgets the returned leases', async (name, reset) => {
  await limitTo(twoGroups(name, { paused: true }));
  const same = { 'idempotency-key': name };
  await queued(WANTED, same);
  await untilStatus(`${name}-narrow`, { in_use: 0 });
  await reset(`${name}-narrow`);
  await queued(WANTED, same);
  await limitTo(twoGroups(name));
  const lease = await leased(WANTED, same);
  expect(lease.groups).toEqual([`${name}-narrow`, `${name}-wide`]);
  await del(lease.lease);
});
