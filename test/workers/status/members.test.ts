// Members of a group as operators see them, and taking one out.
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { MemberStatus } from '../../../src/contract/status.ts';
import type { RequestFields } from '../../support/requests.ts';
import {
  NO_COOLDOWN,
  nothingLeaks,
  pool,
  queueUp,
  refusedThenServed,
  releaseById,
  request,
  resetPool,
  take,
  type PoolGranted,
} from '../support/pool.ts';
import { admin, change } from '../support/worker.ts';

afterAll(nothingLeaks);

let groups = 0;

/** Grants of a test, given back at its end. */
let held: { readonly group: string; readonly lease: PoolGranted }[] = [];

afterEach(async () => {
  for (const { group, lease } of held) await releaseById(group, lease);
  held = [];
});

async function hold(
  group: string,
  ticket: string,
  fields: RequestFields = {},
): Promise<PoolGranted> {
  const lease = await take(group, ticket, fields);
  held.push({ group, lease });
  return lease;
}

/** A group with two members of two slots each. */
async function split(fields: object = {}): Promise<string> {
  groups += 1;
  const name = `split-${groups}`;
  await change('PUT', `/groups/${name}`, {
    match: { models: [`m-${groups}`] },
    members: [
      { name: 'a', upstream: 'openai', limits: { max_concurrency: 2, rpm: 60 } },
      { name: 'b', upstream: 'groq', limits: { max_concurrency: 2 }, tier: 2, weight: 3 },
    ],
    holds: NO_COOLDOWN,
    ...fields,
  });
  return name;
}

async function membersOf(name: string): Promise<readonly MemberStatus[]> {
  const { json } = await admin('GET', `/groups/${name}/status`);
  return json.members;
}

async function memberOf(name: string, id: string): Promise<MemberStatus | undefined> {
  return (await membersOf(name)).find((member) => member.id === id);
}

describe('the status', () => {
  it('tells of each member, also of a group that was never called', async () => {
    const name = await split();
    const { json } = await admin('GET', `/groups/${name}/status`);
    expect(json.limit).toEqual({ configured: 4, effective: 4, source: 'configured' });
    expect(json.affinity).toEqual({ kept_total: 0, left_total: 0, waited_total: 0 });
    const [a, b] = json.members;
    expect(a).toMatchObject({
      id: 'a',
      upstream: 'openai',
      tier: 1,
      weight: 1,
      in_use: 0,
      limit: { configured: 2, effective: 2, source: 'configured' },
      out: null,
      rates: { rpm: { limit: 60 } },
    });
    expect(b).toMatchObject({ id: 'b', upstream: 'groq', tier: 2, weight: 3, rates: {} });
    // As the object tells of itself.
    await (await hold(name, 'first')).lease.release('success', 200);
    expect((await pool(name).status()).limit).toEqual(json.limit);
  });

  it('counts where calls run, what they used, and says so of each', async () => {
    const name = await split();
    const one = await hold(name, 'one');
    await hold(name, 'two');
    await hold(name, 'three');
    expect((await membersOf(name)).map(({ in_use }) => in_use)).toEqual([2, 1]);
    const { json } = await admin('GET', `/groups/${name}/leases`);
    const places = json.leases.map(({ id, member }: { id: string; member: string }) => [
      id,
      member,
    ]);
    expect(Object.fromEntries(places)).toEqual({ 'one.1': 'a', 'two.1': 'a', 'three.1': 'b' });
    const history = await admin('GET', `/groups/${name}/history`);
    expect(history.json.points[0]).toMatchObject({ limit: 4, limit_configured: 4 });
    const seen = { inputTokens: 7, outputTokens: 3 };
    await one.lease.release('success', 200, { requests: 1, ...seen, usd: 0.25, seen });
    expect(await memberOf(name, 'a')).toMatchObject({
      in_use: 1,
      granted_total: 2,
      input_tokens_total: 7,
      output_tokens_total: 3,
      cost_usd_total: 0.25,
    });
  });

  it('says nothing of members where a group names none', async () => {
    await change('PUT', '/groups/whole', { limits: { max_concurrency: 1 } });
    await (await hold('whole', 'one')).lease.release('success', 200);
    const { json } = await admin('GET', '/groups/whole/status');
    expect(json).not.toHaveProperty('members');
    expect(json).not.toHaveProperty('affinity');
  });

  it('tells of a member that a refusal took out, why, and until when', async () => {
    const name = await split();
    expect(await refusedThenServed(name, 'one', 'unauthorized')).toEqual(['a', 'b']);
    expect(await memberOf(name, 'a')).toMatchObject({
      refused_total: 1,
      out: {
        reason: 'unauthorized',
        since: expect.stringMatching(/Z$/),
        probe_at: expect.stringMatching(/Z$/),
      },
    });
    const { json } = await admin('GET', `/groups/${name}/status`);
    expect(json.limit).toMatchObject({ configured: 4, effective: 2 });
  });

  it('shows a member that the configuration names no more, while a call runs there', async () => {
    const name = await split();
    const one = await hold(name, 'one');
    await change('PATCH', `/groups/${name}`, { members: [{ name: 'b', upstream: 'groq' }] });
    expect(await memberOf(name, 'a')).toMatchObject({ retired: true, upstream: null, in_use: 1 });
    await one.lease.release('success', 200);
    expect((await membersOf(name)).map(({ id }) => id)).toEqual(['b']);
  });
});

describe('who waits', () => {
  it('is shown with the members that it does not go to', async () => {
    const name = await split({ limits: { max_concurrency: 1 } });
    const { lease } = await hold(name, 'one');
    const { answer } = await queueUp(name, 'two', { excluded: ['b'] });
    const { json } = await admin('GET', `/groups/${name}/waiters`);
    expect(json.waiters).toMatchObject([{ ticket: 'two', excluded_members: ['b'] }]);
    expect(json.waiters[0]).not.toHaveProperty('waits_for_member');
    await lease.release('success', 200);
    const second = await answer;
    expect(second).toMatchObject({ kind: 'granted', member: 'a' });
    if (second.kind === 'granted') await second.lease.release('success', 200);
  });

  it('is shown with the member that it waits for', async () => {
    const name = await split({ affinity: { wait: '30s' }, limits: { max_concurrency: 8 } });
    const first = await hold(name, 'one', { agent: 'run' });
    await hold(name, 'two', { agent: 'run' });
    const { answer } = await queueUp(name, 'three', { agent: 'run' });
    const { json } = await admin('GET', `/groups/${name}/waiters`);
    expect(json.waiters).toMatchObject([{ ticket: 'three', waits_for_member: 'a' }]);
    await first.lease.release('success', 200);
    const third = await answer;
    expect(third).toMatchObject({ kind: 'granted', member: 'a' });
    if (third.kind === 'granted') await third.lease.release('success', 200);
  });
});

it('the decision says where the call went, why there, and why not elsewhere', async () => {
  const name = await split();
  await hold(name, 'one');
  const { json } = await admin('GET', `/groups/${name}/decisions`);
  expect(json.decisions[0].placed).toEqual({
    member: 'a',
    by: 'load',
    others: [{ member: 'b', cause: 'tier' }],
  });
});

it('a member that gets a name keeps what runs there, and its limit', async () => {
  const name = await split();
  const one = await hold(name, 'one');
  await hold(name, 'two');
  const renamed = { name: 'renamed', upstream: 'openai', limits: { max_concurrency: 2 } };
  const rest = { name: 'b', upstream: 'groq', limits: { max_concurrency: 2 }, tier: 2 };
  await change('PATCH', `/groups/${name}`, { members: [renamed, rest] });
  expect(await memberOf(name, 'renamed')).toMatchObject({ in_use: 2 });
  expect((await hold(name, 'three')).member).toBe('b');
  await one.lease.release('success', 200);
  expect((await hold(name, 'four')).member).toBe('renamed');
});

it("what ran before the group had members counts where the upstream's own key is named", async () => {
  await change('PUT', '/upstreams/ours', {
    base_url: 'https://ours.test/v1',
    auth: { secret: 'UPSTREAM_OURS' },
  });
  const fields = { limits: { max_concurrency: 2 }, holds: NO_COOLDOWN };
  await change('PUT', '/groups/grows', fields);
  await hold('grows', 'one', { upstream: 'ours' });
  const own = { name: 'own', upstream: 'ours', secret: 'UPSTREAM_OURS' };
  await change('PATCH', '/groups/grows', { limits: null, members: [own] });
  expect(await memberOf('grows', 'own')).toMatchObject({ in_use: 1 });
});

describe('an operator', () => {
  it('takes a member out until he brings it back, over a reset of its object', async () => {
    const name = await split();
    expect(await change('POST', `/groups/${name}/members/a/take-out`)).toMatchObject({
      status: 200,
      json: {
        version: expect.any(Number),
        group: { name, members: [{ name: 'a', enabled: false }, { name: 'b' }] },
      },
    });
    expect((await hold(name, 'one')).member).toBe('b');
    await resetPool(name);
    expect((await hold(name, 'two')).member).toBe('b');
    expect(await memberOf(name, 'a')).toMatchObject({ enabled: false, out: null });
    expect(await change('POST', `/groups/${name}/members/a/bring-back`)).toMatchObject({
      status: 200,
      json: { group: { members: [{ enabled: true }, {}] }, pools: 1, unreachable: [] },
    });
    expect((await hold(name, 'three')).member).toBe('a');
    const { json } = await admin('GET', '/audit?limit=2');
    expect(json.entries.map(({ action }: { action: string }) => action)).toEqual([
      `group ${name}: enable member a`,
      `group ${name}: disable member a`,
    ]);
  });

  it('takes it out of a partition too that begins later', async () => {
    const name = await split({ partition_by: ['caller'] });
    await change('POST', `/groups/${name}/members/a/take-out`);
    const mine = `${name}#mine`;
    const { lease, member } = await take(mine, 'first', { group: name, partition: 'mine' });
    expect(member).toBe('b');
    await lease.release('success', 200);
    await change('POST', `/groups/${name}/members/a/bring-back`);
    const next = await take(mine, 'second', { group: name, partition: 'mine' });
    expect(next.member).toBe('a');
    await next.lease.release('success', 200);
  });

  it('leaves callers a clear word where no member is left', async () => {
    const name = await split();
    await refusedThenServed(name, 'one', 'quota');
    await change('POST', `/groups/${name}/members/b/take-out`);
    const impatient = request(name, 'two', { deadlineAt: Date.now() + 10_000 });
    expect(await pool(name).acquire(impatient)).toMatchObject({
      kind: 'rejected',
      rejection: { reason: 'members_out' },
    });
    const { json } = await change('POST', `/groups/${name}/members/a/take-out`);
    expect(json.warnings).toContainEqual(expect.stringContaining('every member is disabled'));
    expect(await pool(name).acquire(request(name, 'three'))).toMatchObject({
      kind: 'rejected',
      rejection: { reason: 'members_out', retryAfterMs: null },
    });
  });

  it('brings back at once what a refusal took out', async () => {
    const name = await split();
    await refusedThenServed(name, 'one', 'quota');
    expect((await hold(name, 'two')).member).toBe('b');
    const before = await admin('GET', '/config');
    await admin('POST', `/groups/${name}/members/a/bring-back`);
    expect((await hold(name, 'three')).member).toBe('a');
    // No change of the configuration, but in the audit log.
    expect((await admin('GET', '/config')).json).toEqual(before.json);
    const { json } = await admin('GET', '/audit?limit=1');
    expect(json.entries).toMatchObject([{ action: `group ${name}: enable member a` }]);
  });

  it('hears which members there are, when there is none of that name', async () => {
    const name = await split();
    const unknown = await admin('POST', `/groups/${name}/members/c/take-out`);
    expect(unknown).toMatchObject({
      status: 404,
      json: { detail: `Group \`${name}\` has no member \`c\`. It has: \`a\`, \`b\`.` },
    });
    await change('PUT', '/groups/unsplit', { limits: { max_concurrency: 1 } });
    expect(await admin('POST', '/groups/unsplit/members/openai/bring-back')).toMatchObject({
      status: 404,
      json: { detail: 'Group `unsplit` has no member `openai`. It has no members.' },
    });
  });
});
