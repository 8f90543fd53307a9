// Contract version 1 against the present object: for minutes after a deploy Workers and objects run
// different versions. Answers may have more fields than these, never fewer.
import { afterAll, describe, expect, it } from 'vitest';
import type { GroupRpc } from '../../../src/contract/rpc/group-rpc.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import { nothingLeaks, resetPool } from '../support/pool.ts';
import { env, until } from '../support/worker.ts';
import {
  acquireAutomaticV1,
  acquireOfLaterVersion,
  acquireV1,
  definitionV1,
  resumeV1,
  type GroupV1,
} from './contract-v1.ts';

afterAll(nothingLeaks);

function object(name: string): GroupV1 {
  return env.GROUPS.getByName(name) as unknown as GroupV1;
}

async function untilQueued(name: string, queued: number): Promise<void> {
  await until(async () => expect(await object(name).status()).toMatchObject({ queued }));
}

describe.each([
  ['version 1', acquireV1],
  ['a later version with unknown fields', acquireOfLaterVersion],
])('an acquire call of %s', (version, acquire) => {
  const name = (test: string) => `${test}-${version.length}`;

  it('is granted, renewed, revoked and released', async () => {
    const group = name('granted');
    await object(group).reconfigure(definitionV1(group, 1));
    const answer = await object(group).acquire(acquire(group, 't'));
    expect(answer).toMatchObject({
      kind: 'granted',
      leaseId: 't.1',
      attachment: expect.any(Number),
      configVersion: 1,
    });
    expect(await object(group).leases()).toMatchObject([
      {
        id: 't.1',
        caller: 'fp_000000000000000000000000',
        agent: 'run-1',
        upstream: 'openai',
        model: 'gpt-4o',
        granted_at: expect.stringMatching(/^\d{4}-.*Z$/),
        age_ms: expect.any(Number),
        expires_at: expect.stringMatching(/^\d{4}-.*Z$/),
        state: 'held',
      },
    ]);
    const parked = answer.lease.renew(200);
    expect(await object(group).revoke('t.1')).toBe(true);
    expect(await parked).toBe('revoking');
    expect(await answer.lease.renew(200)).toBe('revoking');
    expect(await answer.lease.release('cancelled', 200)).toBeUndefined();
    expect(await answer.lease.renew(200)).toBe('gone');
    expect(await object(group).revoke('t.1')).toBe(false);
  });

  it('waits, is superseded by the same ticket, and is granted in its turn', async () => {
    const group = name('pending');
    await object(group).reconfigure(definitionV1(group, 1));
    await object(group).acquire(acquire(group, 'holder'));
    const older = object(group).acquire(acquire(group, 't'));
    await untilQueued(group, 1);
    const newer = object(group).acquire(acquire(group, 't'));
    expect(await older).toMatchObject({
      kind: 'pending',
      position: 0,
      estimateMs: expect.any(Number),
      configVersion: 1,
    });
    expect(await object(group).acquire(acquire(group, 'third'))).toMatchObject({
      kind: 'rejected',
      rejection: { reason: 'queue_full', queueLengthMax: 1, retryAfterMs: expect.any(Number) },
      configVersion: 1,
    });
    await object(group).release('holder.1', 'success', 200);
    expect(await newer).toMatchObject({ kind: 'granted', leaseId: 't.1' });
    await object(group).release('t.1', 'unused', null);
  });

  it('that would not wait is told that the group is busy, or is routed anew and told that it is paused', async () => {
    const group = name('rejected');
    await object(group).reconfigure(definitionV1(group, 0));
    expect(await object(group).acquire(acquire(group, 't', false))).toMatchObject({
      kind: 'rejected',
      rejection: { reason: 'busy', slotsMax: 0, retryAfterMs: expect.any(Number) },
    });
    await object(group).reconfigure({ ...definitionV1(group, 1, { paused: true }), version: 2 });
    const older = acquire(group, 'u', false);
    expect(await object(group).acquire(older)).toEqual({ kind: 'moved', configVersion: 2 });
    expect(
      await object(group).acquire({ ...older, configVersion: 2, sinceVersion: 2 }),
    ).toMatchObject({
      kind: 'rejected',
      rejection: { reason: 'paused', waitedMs: 0, retryAfterMs: expect.any(Number) },
    });
  });

  it('is told at its deadline that its time is over', async () => {
    const group = name('deadline');
    await object(group).reconfigure(definitionV1(group, 0));
    const deadlineAt = Date.now() + 50;
    expect(await object(group).acquire(acquire(group, 't', true, { deadlineAt }))).toMatchObject({
      kind: 'rejected',
      rejection: { reason: 'queue_timeout', waitedMs: expect.any(Number) },
    });
  });

  it('is sent elsewhere by a group that was deleted, and is gone once it was cancelled', async () => {
    const group = name('moved');
    await object(group).reconfigure(definitionV1(group, 0));
    const waiting = object(group).acquire(acquire(group, 't'));
    await untilQueued(group, 1);
    await object(group).reconfigure({ version: 2, routingVersion: 2, config: null });
    expect(await waiting).toMatchObject({ kind: 'moved', configVersion: 2 });
    await object(group).reconfigure({ ...definitionV1(group, 1), version: 3 });
    await object(group).cancel('t');
    expect(await object(group).acquire(acquire(group, 't'))).toMatchObject({ kind: 'gone' });
  });

  it('is resumed after a reset, and not after its end', async () => {
    const group = name('resumed');
    await object(group).reconfigure(definitionV1(group, 1));
    await object(group).acquire(acquire(group, 't'));
    await resetPool(group);
    const resumed = await object(group).resume(resumeV1(group, 't'));
    expect(resumed).toMatchObject({
      kind: 'granted',
      leaseId: 't.1',
      attachment: expect.any(Number),
      configVersion: 1,
    });
    await resumed.lease.release('failed', 503);
    expect(await object(group).resume(resumeV1(group, 't'))).toMatchObject({ kind: 'gone' });
  });
});

it('an automatic group takes its limit from the acquire call', async () => {
  const name = 'auto:zai/glm-5.1#fp_000000000000000000000000';
  const group = 'auto:zai/glm-5.1';
  const answer = await object(name).acquire(acquireAutomaticV1(group, 'a'));
  expect(answer.kind).toBe('granted');
  expect(await object(name).acquire(acquireAutomaticV1(group, 'b'))).toMatchObject({
    kind: 'rejected',
    rejection: { reason: 'busy', slotsMax: 1 },
  });
  await answer.lease.release('unused', null);
});

it('the status has every field of version 1', async () => {
  await object('status').reconfigure(definitionV1('status', 3));
  expect(await object('status').status()).toMatchObject({
    group: 'status',
    partition: null,
    limit: { configured: 3, effective: 3, source: 'configured' },
    in_use: 0,
    cooling: 0,
    queued: 0,
    oldest_wait_ms: 0,
    paused: false,
    paused_until: null,
    granted_total: 0,
    rejected_total: {},
    expired_total: 0,
    resurrected_total: 0,
    passed_unlimited_total: 0,
  });
});

/** Every call of the contract; the compiler sees to it that none is missing. */
const CALLS: Readonly<Record<keyof GroupRpc, true>> = {
  acquire: true,
  cancel: true,
  release: true,
  report: true,
  resume: true,
  renew: true,
  keepPrefetch: true,
  giveBack: true,
  status: true,
  leases: true,
  metrics: true,
  history: true,
  callsOfLastHour: true,
  costs: true,
  decisions: true,
  calls: true,
  flush: true,
  warnings: true,
  preview: true,
  waiters: true,
  callsOf: true,
  watch: true,
  promote: true,
  dismiss: true,
  dismissAll: true,
  relearn: true,
  bringBack: true,
  revoke: true,
  revokeAll: true,
  forget: true,
  takeOver: true,
  isVerified: true,
  reconfigure: true,
  correctSpend: true,
  undoCorrection: true,
  corrections: true,
};

it('nothing of the object can be called that is not in the contract', () => {
  const methods = Object.getOwnPropertyNames(GroupObject.prototype);
  expect(methods.toSorted()).toEqual(['alarm', 'constructor', ...Object.keys(CALLS)].toSorted());
});
