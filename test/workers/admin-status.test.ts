// Status and leases over the admin API, with real groups that hold real leases.
import { runInDurableObject } from 'cloudflare:test';
import { env as bindings, exports } from 'cloudflare:workers';
import { beforeEach, describe, expect, it } from 'vitest';
import { directoryOf, type Env } from '../../src/env.ts';
import type { LeaseRpc } from '../../src/contract/rpc/group-rpc.ts';
import { poolOf } from '../../src/routing/pool.ts';
import { acquireRequest } from '../support/requests.ts';

// The test pool types its bindings and exports by a generated file that this project does not keep.
const env = bindings as unknown as Env;
const worker = (exports as unknown as { default: Fetcher }).default;

async function ask(method: string, path: string, body?: unknown) {
  const response = await worker.fetch(`https://headgate.test/admin/api${path}`, {
    method,
    headers: { authorization: 'Bearer test-admin-token', 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads many shapes of answers
  return { status: response.status, json: (await response.json()) as any };
}

interface AdminStatusHeld {
  readonly id: string;
  readonly lease: LeaseRpc;
}

let tickets = 0;

/** Takes a slot as a Worker would. */
async function hold(
  group: string,
  partition: string | null,
  slotsMax?: number,
): Promise<AdminStatusHeld> {
  const configVersion = (await directoryOf(env).snapshot(null))?.version ?? 0;
  tickets += 1;
  const request = acquireRequest(group, `ticket-${tickets}`, {
    partition,
    assumed: slotsMax === undefined ? null : { slotsMax, source: 'built_in' },
    configVersion,
    wait: false,
    sliceMs: 8_000,
  });
  const answer = await poolOf(env, group, partition, null).acquire(request);
  if (answer.kind !== 'granted') throw new Error(JSON.stringify(answer));
  return { id: answer.leaseId, lease: answer.lease };
}

function list(group: string, partition: string | null): Promise<boolean> {
  return directoryOf(env).list({ group, partition });
}

beforeEach(async () => {
  await ask('PUT', '/config', {});
});

describe('status', () => {
  it('shows a configured group before its first call', async () => {
    await ask('PUT', '/groups/idle', { limits: { max_concurrency: 7 } });
    expect((await ask('GET', '/groups/idle/status')).json).toMatchObject({
      name: 'idle',
      kind: 'configured',
      limit: { configured: 7, effective: 7, source: 'configured' },
      in_use: 0,
      queued: 0,
      rejected_total: {},
      partitions: [],
    });
  });

  it('shows slots in use and refusals', async () => {
    await ask('PUT', '/groups/busy', { limits: { max_concurrency: 1 } });
    const { lease } = await hold('busy', null);
    await expect(hold('busy', null)).rejects.toThrow('busy');
    expect((await ask('GET', '/status')).json.groups[0]).toMatchObject({
      name: 'busy',
      in_use: 1,
      granted_total: 1,
      rejected_total: { busy: 1 },
      queued_by_lane: { high: 0, normal: 0, low: 0 },
      draining: false,
      dry_run: false,
      would_wait_total: 0,
      idle_ms: 0,
    });
    await lease.release('unused', null);
  });

  it('adds up partitions and shows each', async () => {
    await ask('PUT', '/groups/split', {
      partition_by: ['caller'],
      limits: { max_concurrency: 2 },
    });
    expect((await ask('GET', '/groups/split/status')).json).toMatchObject({
      limit: { configured: 2, effective: 2 },
      partitions: [],
    });
    await list('split', 'one');
    await list('split', 'two');
    const held = [
      await hold('split', 'one'),
      await hold('split', 'two'),
      await hold('split', 'two'),
    ];
    const { json } = await ask('GET', '/groups/split/status');
    expect(json).toMatchObject({
      limit: { configured: 2, effective: 2 },
      in_use: 3,
      granted_total: 3,
      partitions: [
        { partition: 'one', in_use: 1 },
        { partition: 'two', in_use: 2 },
      ],
    });
    await Promise.all(held.map(({ lease }) => lease.release('unused', null)));
  });

  it('shows automatic groups with the source of their limit, by their name in the path too', async () => {
    await list('auto:zai/glm-5.1', 'fp_1');
    const { lease } = await hold('auto:zai/glm-5.1', 'fp_1', 1);
    const { json } = await ask('GET', '/groups/auto%3Azai%2Fglm-5.1/status');
    expect(json).toMatchObject({
      name: 'auto:zai/glm-5.1',
      kind: 'automatic',
      limit: { configured: null, effective: 1, source: 'built_in' },
      in_use: 1,
      partitions: [{ partition: 'fp_1' }],
    });
    const { json: all } = await ask('GET', '/status');
    expect(all.groups.map(({ name }: { name: string }) => name)).toContain('auto:zai/glm-5.1');
    await lease.release('unused', null);
  });

  it('shows a deleted group until its last lease has ended', async () => {
    await ask('PUT', '/groups/leaving', { limits: { max_concurrency: 2 } });
    const { lease } = await hold('leaving', null);
    await ask('DELETE', '/groups/leaving');
    expect((await ask('GET', '/groups/leaving/status')).json).toMatchObject({
      kind: 'retired',
      in_use: 1,
    });
    await lease.release('unused', null);
    expect((await ask('GET', '/groups/leaving/status')).status).toBe(404);
  });

  it('shows old and new pools of a group that is split anew', async () => {
    await ask('PUT', '/groups/both', { limits: { max_concurrency: 2 } });
    const { lease } = await hold('both', null);
    await ask('PATCH', '/groups/both', { partition_by: ['caller'] });
    await list('both', 'new');
    const { json } = await ask('GET', '/groups/both/status');
    expect(json.in_use).toBe(1);
    expect(json.partitions).toMatchObject([
      { partition: null, in_use: 1, retired: true },
      { partition: 'new', in_use: 0 },
    ]);
    await lease.release('unused', null);
    expect((await ask('GET', '/groups/both/status')).json.partitions).toHaveLength(1);
  });

  it('says which groups may count the same calls', async () => {
    await ask('PUT', '/config', {
      groups: [
        { name: 'wide', match: { upstreams: ['openai'] } },
        { name: 'narrow', match: { models: ['gpt-4o'] } },
        { name: 'apart', match: { upstreams: ['anthropic'], models: ['claude-*'] } },
      ],
    });
    const [wide, narrow, apart] = (await ask('GET', '/status')).json.groups;
    expect(wide).toMatchObject({ name: 'wide', overlaps_with: ['narrow'] });
    expect(narrow.overlaps_with).toEqual(['wide']);
    expect(apart.overlaps_with).toEqual([]);
  });

  it('shows a pool that cannot be reached and fails nothing else', async () => {
    await ask('PUT', '/config', {
      groups: [{ name: 'half', partition_by: ['caller'] }, { name: 'whole' }],
    });
    await list('half', 'broken');
    await list('half', 'fine');
    await runInDurableObject(poolOf(env, 'half', 'broken', null) as never, (instance: object) => {
      const failing = () => Promise.reject(new Error('this pool is broken'));
      for (const name of ['status', 'leases', 'revoke']) {
        Object.defineProperty(instance, name, { value: failing });
      }
    });
    const { status, json } = await ask('GET', '/status');
    expect(status).toBe(200);
    const [half, whole] = json.groups;
    expect(half.error).toContain('1 of 2 pools did not respond');
    expect(half.partitions[0]).toMatchObject({ partition: 'broken', error: expect.any(String) });
    expect(half.partitions[1]).toMatchObject({ partition: 'fine', in_use: 0 });
    expect(whole).not.toHaveProperty('error');
    expect((await ask('GET', '/groups/half/leases')).json.unreachable).toHaveLength(1);
    expect((await ask('DELETE', '/groups/half/leases/x')).status).toBe(503);
  });

  it.each(['/groups/none/status', '/groups/auto%3Anone/status', '/groups/none/leases'])(
    'of a group that nobody knows is a 404: %s',
    async (path) => {
      expect((await ask('GET', path)).json).toMatchObject({ status: 404 });
    },
  );
});

describe('leases', () => {
  it('of all partitions are listed and force-released', async () => {
    await ask('PUT', '/groups/held', { partition_by: ['caller'], limits: { max_concurrency: 2 } });
    await list('held', 'one');
    await list('held', 'two');
    const one = await hold('held', 'one');
    const two = await hold('held', 'two');
    const { json } = await ask('GET', '/groups/held/leases');
    expect(json.leases.map((lease: { id: string }) => lease.id).sort()).toEqual(
      [one.id, two.id].sort(),
    );
    expect(json.leases[0]).toMatchObject({
      model: 'gpt-4o',
      state: 'held',
      tenant: 'caller',
      agent: null,
      lane: 'normal',
      slots: 1,
    });
    const revoked = await ask('DELETE', `/groups/held/leases/${two.id}`);
    expect(revoked).toMatchObject({ status: 202, json: { id: two.id, state: 'revoking' } });
    expect(await two.lease.renew(null)).toBe('revoking');
    const [entry] = (await ask('GET', '/audit?limit=1')).json.entries;
    expect(entry).toMatchObject({
      actor: 'admin-token',
      action: `group held: release lease ${two.id}`,
    });
    const after = (await ask('GET', '/groups/held/leases')).json.leases;
    expect(after.find((lease: { id: string }) => lease.id === one.id).state).toBe('held');
    await one.lease.release('unused', null);
    await two.lease.release('cancelled', null);
  });

  it('that nobody holds are a 404', async () => {
    await ask('PUT', '/groups/held', {});
    const { status, json } = await ask('DELETE', '/groups/held/leases/nothing.1');
    expect(status).toBe(404);
    expect(json.detail).toContain('nothing.1');
  });
});
