import { describe, expect, it } from 'vitest';
import type { AcquireRequest } from '../../../src/contract/rpc/group-rpc.ts';
import { instant } from '../../../src/core/words/ids.ts';
import { instantBy, ticketFrom } from '../../../src/group/requests.ts';
import { acquireRequest } from '../../support/requests.ts';

const NOW = instant(1_800_000_000_000);
const HOUR_MS = 3_600_000;

/** An acquire call of a call that came 4 s ago, waits for 30 s and belongs to a run of a minute. */
function acquire(skewMs: number, sentAt: number | undefined): AcquireRequest {
  const by = NOW + skewMs;
  return acquireRequest('g', 't', {
    enqueuedAt: by - 4_000,
    deadlineAt: by + 26_000,
    agentStartedAt: by - 60_000,
    sliceMs: 8_000,
    ...(sentAt !== undefined && { sentAt }),
  });
}

const OURS = {
  enqueuedAt: NOW - 4_000,
  deadlineAt: NOW + 26_000,
  agentStartedAt: NOW - 60_000,
};

it.each([HOUR_MS, -HOUR_MS, 6_000, -6_000, 4_900, -4_900, 2_000])(
  'the instants of a Worker whose clock differs by %i ms are as long ago as it says',
  (skewMs) => {
    expect(ticketFrom(acquire(skewMs, NOW + skewMs), NOW)).toMatchObject(OURS);
  },
);

it('clocks that agree are left alone: calls of one Worker keep their order, however long a message took', () => {
  expect(ticketFrom(acquire(0, NOW - 3_000), NOW)).toMatchObject(OURS);
  expect(ticketFrom(acquire(0, NOW + 50), NOW)).toMatchObject(OURS);
});

describe('clocks that are ahead of the wall clock by what they noticed of steps back', () => {
  const TRANSIT_MS = 3_000;

  it.each([
    [2_000, 0],
    [0, 2_000],
    [60_000, 58_000],
    [0, 3_900],
  ])(
    'the Worker by %i ms, the object by %i ms: no wait is longer, shorter or older',
    (by, ours) => {
      const now = instant(NOW + ours);
      const sent = { ...acquire(by, NOW + by), clockAheadMs: by };
      expect(ticketFrom(sent, now, ours)).toMatchObject({
        enqueuedAt: now - 4_000,
        deadlineAt: now + 26_000,
        agentStartedAt: now - 60_000,
      });
    },
  );

  it.each([
    [60_000, 0],
    [0, 60_000],
    [60_000, 60_000],
  ])(
    'the Worker by %i ms, the object by %i ms: a message in transit delays no deadline',
    (by, ours) => {
      const now = instant(NOW + TRANSIT_MS + ours);
      const sent = { ...acquire(by, NOW + by), clockAheadMs: by };
      expect(ticketFrom(sent, now, ours).deadlineAt).toBe(NOW + ours + 26_000);
    },
  );

  it('a message that was in transit as the clock was set back keeps its instants', () => {
    const stepMs = 60_000;
    const now = instant(NOW + 20);
    // It was sent before the step, and the object has noticed it.
    expect(ticketFrom(acquire(0, NOW), now, stepMs).deadlineAt).toBe(now + 26_000);
  });
});

describe('the expiry of a lease by the clock of its holder', () => {
  const EXPIRES_AT = NOW + 45_000;

  it.each([0, HOUR_MS, -HOUR_MS])('which is ahead by %i ms counts from when it was sent', (by) => {
    const arrivedAt = instant(NOW + 3_000);
    expect(instantBy(NOW + by, arrivedAt, EXPIRES_AT)).toBe(NOW + by + 42_000);
  });

  it('is by the clock of the object for a request that names no instant', () => {
    expect(instantBy(undefined, NOW, EXPIRES_AT)).toBe(EXPIRES_AT);
  });
});

it('the instants of a message that does not say when it was sent are believed', () => {
  const { enqueuedAt } = ticketFrom(acquire(HOUR_MS, undefined), NOW);
  expect(enqueuedAt).toBe(NOW + HOUR_MS - 4_000);
});
