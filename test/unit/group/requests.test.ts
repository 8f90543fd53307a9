import { expect, it } from 'vitest';
import type { AcquireRequest } from '../../../src/contract/rpc/group-rpc.ts';
import { instant } from '../../../src/core/words/ids.ts';
import { ticketFrom } from '../../../src/group/requests.ts';

const NOW = instant(1_800_000_000_000);
const HOUR_MS = 3_600_000;

/** An acquire call of a call that came 4 s ago, waits for 30 s and belongs to a run of a minute. */
function acquire(skewMs: number, sentAt: number | undefined): AcquireRequest {
  const by = NOW + skewMs;
  return {
    version: 1,
    group: 'g',
    partition: null,
    assumed: null,
    configVersion: 1,
    ticketId: 't',
    attempt: 1,
    enqueuedAt: by - 4_000,
    deadlineAt: by + 26_000,
    agentStartedAt: by - 60_000,
    wait: true,
    sliceMs: 8_000,
    caller: 'c',
    agent: 'run',
    upstream: 'u',
    model: null,
    passedUnlimited: 0,
    ...(sentAt === undefined ? {} : { sentAt }),
  };
}

const OURS = {
  enqueuedAt: NOW - 4_000,
  deadlineAt: NOW + 26_000,
  agentStartedAt: NOW - 60_000,
};

it.each([HOUR_MS, -HOUR_MS, 6_000, -6_000])(
  'the instants of a Worker whose clock differs by %i ms are as long ago as it says',
  (skewMs) => {
    expect(ticketFrom(acquire(skewMs, NOW + skewMs), NOW)).toMatchObject(OURS);
  },
);

it('clocks that agree are left alone: calls of one Worker keep their order, however long a message took', () => {
  expect(ticketFrom(acquire(0, NOW - 3_000), NOW)).toMatchObject(OURS);
  expect(ticketFrom(acquire(0, NOW + 50), NOW)).toMatchObject(OURS);
});

it('an older Worker does not say when it asked, and is believed', () => {
  const { enqueuedAt } = ticketFrom(acquire(HOUR_MS, undefined), NOW);
  expect(enqueuedAt).toBe(NOW + HOUR_MS - 4_000);
});
