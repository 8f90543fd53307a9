// What a holder reports about its lease, and how long it attempts to report the end.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { leaseId, memberId } from '../../../src/core/words/ids.ts';
import { claimNow, leaseOf, renewById, sendLast } from '../../../src/routing/held-lease.ts';
import { steadyClock } from '../../../src/runtime/async.ts';
import { acquireRequest } from '../../support/requests.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const ASKED = acquireRequest('g', 't', {
  tenant: 'acme',
  agent: 'run-1',
  session: 's',
  kind: 'lease',
  tier: 'flex',
  credential: 'fp_1',
  isUnread: true,
  isById: true,
});

const RESERVED = { demand: { requests: 1, inputTokens: 2, outputTokens: 3 }, usd: 4 };

const GRANTED = {
  leaseId: leaseId('t.1'),
  member: memberId('m'),
  attachment: 5,
  nested: { in: leaseId('p.1'), slots: 1 },
  heirOf: [leaseId('s.1')],
  reserved: { ...RESERVED, inputEstimate: null },
};

const POOL = { group: 'g', partition: null, assumed: null };

describe('a lease that was stored', () => {
  const lease = leaseOf(ASKED, GRANTED);
  const held = (grantedAt: number, expiresAt: number) =>
    JSON.parse(JSON.stringify({ lease, grantedAt, expiresAt })) as Parameters<typeof claimNow>[0];

  it('is reported with everything that its pool knew', () => {
    const now = steadyClock.now();
    expect(claimNow(held(now - 7, now + 1))).toEqual({
      ...POOL,
      lane: 'normal',
      slots: 1,
      isById: true,
      ...GRANTED,
      ticketId: 't',
      holder: ASKED.ticket.holder,
      heldMs: 7,
      hasLapsed: false,
      sentAt: now,
    });
    expect(claimNow(held(now + 1, now))).toMatchObject({ heldMs: 0, hasLapsed: true });
  });

  it('has the attachment and the expiry of its last renewal', async () => {
    const now = steadyClock.now();
    const renew = () => Promise.resolve({ kind: 'ok', attachment: 9, expiresAt: now + 2 } as const);
    const stored = held(now, now + 1);
    expect(await renewById({ renew }, stored, 200)).toEqual({
      kind: 'ok',
      held: { ...stored, lease: { ...lease, attachment: 9 }, expiresAt: now + 2 },
    });
  });

  it('is gone only if no newer instance has it', async () => {
    const answer = (attachment: number) => ({
      renew: () => Promise.resolve({ kind: 'gone', attachment } as const),
    });
    const now = steadyClock.now();
    expect(await renewById(answer(6), held(now, now + 1), null)).toEqual({ kind: 'gone' });
    await expect(renewById(answer(4), held(now, now + 1), null)).rejects.toThrow('replaced');
  });
});

it('a lost attempt is followed by the next one at once, if that was due meanwhile', async () => {
  const startedAt = Date.now();
  const at: number[] = [];
  const send = (): Promise<void> => {
    at.push(Date.now() - startedAt);
    return new Promise(() => {});
  };
  const sending = sendLast(send, 3_000, [500, 2_000, 6_000]);
  await vi.advanceTimersByTimeAsync(12_000);
  await sending;
  expect(at).toEqual([0, 3_000, 6_000, 9_000]);
});
