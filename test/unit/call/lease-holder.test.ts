// The Worker's side of a lease, against scripted stubs and a virtual clock.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type {
  GroupRpc,
  LeaseRpc,
  RenewAnswer,
  ResumeAnswer,
} from '../../../src/contract/rpc/group-rpc.ts';
import type { GrantedAnswer } from '../../../src/call/acquire/open-calls.ts';
import { LeaseHolder } from '../../../src/call/acquire/lease-holder.ts';
import { leaseId, memberId } from '../../../src/core/words/ids.ts';
import { leaseOf } from '../../../src/routing/held-lease.ts';
import { onTimer } from '../../../src/runtime/async.ts';
import { acquireRequest } from '../../support/requests.ts';

const A = memberId('a');

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Half of the time in which holders come back. */
const RESUME_MS = 50;

const ASKED = acquireRequest('g', 't');

/** The lease as its holder tells of it to an instance that may not know it. */
const HELD = {
  ...leaseOf(ASKED, { leaseId: leaseId('t.1'), attachment: 5 }),
  hasLapsed: false,
  heldMs: expect.any(Number) as number,
  sentAt: expect.any(Number) as number,
};

function scriptedLease() {
  const renewals: PromiseWithResolvers<RenewAnswer>[] = [];
  const lease = {
    renew: vi.fn<LeaseRpc['renew']>(() => {
      const parked = Promise.withResolvers<RenewAnswer>();
      renewals.push(parked);
      return parked.promise;
    }),
    confirm: () => Promise.resolve(),
    passOver: () => Promise.resolve(),
    report: vi.fn<() => Promise<void>>(() => Promise.resolve()),
    release: vi.fn<() => Promise<void>>(() => Promise.resolve()),
    [Symbol.dispose]: vi.fn<() => void>(),
  } satisfies LeaseRpc;
  return { lease, renewals };
}

function granted(
  lease: LeaseRpc,
  attachment: number,
  of: Partial<GrantedAnswer> = {},
): GrantedAnswer {
  return { kind: 'granted', lease, leaseId: leaseId('t.1'), attachment, configVersion: 1, ...of };
}

/** The answer of an instance that is as new as the holder's. */
const GONE: ResumeAnswer = { kind: 'gone', attachment: 6 };

function setUp(of: Partial<GrantedAnswer> = {}, firstRenewalMs?: number) {
  const first = scriptedLease();
  const resume = vi.fn<() => Promise<ResumeAnswer>>(() => Promise.resolve(GONE));
  const release = vi.fn<() => Promise<void>>(() => Promise.resolve());
  const report = vi.fn<() => Promise<void>>(() => Promise.resolve());
  const stub = { resume, release, report } as Partial<GroupRpc> as GroupRpc;
  const work: Promise<unknown>[] = [];
  const ctx = { waitUntil: (one: Promise<unknown>) => void work.push(one) };
  const holder = new LeaseHolder(() => stub, ASKED, granted(first.lease, 5, of), ctx, onTimer);
  const onRevoked = vi.fn<() => void>();
  holder.keep(onRevoked, firstRenewalMs);
  return { ...first, resume, release, report, holder, onRevoked, work };
}

it('a short call never renews', async () => {
  const { holder, lease } = setUp();
  await vi.advanceTimersByTimeAsync(999);
  await holder.release('success');
  await vi.advanceTimersByTimeAsync(60_000);
  expect(lease.renew).not.toHaveBeenCalled();
  expect(lease.release).toHaveBeenCalledExactlyOnceWith('success', null, undefined, true);
  expect(lease[Symbol.dispose]).toHaveBeenCalledOnce();
});

it('a call that holds its slot while it waits in another group renews at once', async () => {
  const { holder, lease } = setUp({}, 0);
  await vi.advanceTimersByTimeAsync(0);
  expect(lease.renew).toHaveBeenCalledOnce();
  await holder.release('success');
});

it('renews in one loop when the call that waited runs, and reports a revocation to the later listener', async () => {
  const { holder, lease, renewals, onRevoked, work } = setUp({}, 0);
  await vi.advanceTimersByTimeAsync(0);
  const onRevokedLater = vi.fn<() => void>();
  holder.keep(onRevokedLater);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(lease.renew).toHaveBeenCalledOnce();
  renewals[0]?.resolve('revoking');
  await Promise.all(work);
  expect([onRevoked, onRevokedLater].map(({ mock }) => mock.calls.length)).toEqual([0, 1]);
  await holder.release('cancelled');
});

it('immediate answers to renewals do not cause a loop', async () => {
  const { holder, lease } = setUp();
  lease.renew.mockImplementation(() => Promise.resolve('ok'));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(lease.renew).toHaveBeenCalledTimes(2);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(lease.renew.mock.calls.length).toBeLessThanOrEqual(12);
  await holder.release('success');
});

it('renews again as soon as the parked renewal is answered, and tells the status', async () => {
  const { holder, lease, renewals, work } = setUp();
  holder.reportAnswer(200);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(lease.renew).toHaveBeenCalledExactlyOnceWith(200);
  renewals[0]?.resolve('ok');
  await vi.advanceTimersByTimeAsync(0);
  expect(lease.renew).toHaveBeenCalledTimes(2);
  await holder.release('success');
  renewals[1]?.resolve('gone');
  await Promise.all(work);
  expect(lease.release).toHaveBeenCalledExactlyOnceWith('success', 200, undefined, true);
});

it('a lease that is taken away is told once, and is released by whoever cut the call', async () => {
  const { holder, renewals, onRevoked, work, lease } = setUp();
  await vi.advanceTimersByTimeAsync(1_000);
  renewals[0]?.resolve('revoking');
  await Promise.all(work);
  expect(onRevoked).toHaveBeenCalledOnce();
  expect(lease.release).not.toHaveBeenCalled();
  await holder.release('cancelled');
  expect(lease.release).toHaveBeenCalledOnce();
});

it.each(['fails', 'says gone', 'hangs'])('a renewal that %s leads to a resumption', async (how) => {
  const { holder, renewals, resume, lease } = setUp();
  const second = scriptedLease();
  resume.mockResolvedValueOnce(granted(second.lease, 9));
  await vi.advanceTimersByTimeAsync(1_000);
  if (how === 'fails') renewals[0]?.reject(new Error('reset'));
  if (how === 'says gone') renewals[0]?.resolve('gone');
  await vi.advanceTimersByTimeAsync((how === 'hangs' ? 20_000 : 0) + RESUME_MS - 1);
  expect(resume).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(resume).toHaveBeenCalledExactlyOnceWith(HELD);
  // The attachment of a new instance holds, however small.
  expect(lease[Symbol.dispose]).toHaveBeenCalledOnce();
  expect(second.lease.renew).toHaveBeenCalledOnce();
  await holder.release('success');
  expect(second.lease.release).toHaveBeenCalledOnce();
  expect(lease.release).not.toHaveBeenCalled();
});

it('a resumption of what has ended for good cuts the call', async () => {
  const { renewals, onRevoked, work } = setUp();
  await vi.advanceTimersByTimeAsync(1_000);
  renewals[0]?.resolve('gone');
  await vi.advanceTimersByTimeAsync(RESUME_MS);
  await Promise.all(work);
  expect(onRevoked).toHaveBeenCalledOnce();
});

it('an instance that was replaced cannot end a lease that a newer one has granted', async () => {
  const { renewals, resume, onRevoked, holder } = setUp();
  const second = scriptedLease();
  resume.mockResolvedValueOnce({ kind: 'gone', attachment: 4 });
  resume.mockResolvedValueOnce(granted(second.lease, 9));
  await vi.advanceTimersByTimeAsync(1_000);
  renewals[0]?.resolve('gone');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(onRevoked).not.toHaveBeenCalled();
  expect(second.lease.renew).toHaveBeenCalledOnce();
  await holder.release('success');
});

it('a group that is out of reach is asked for as long as the stream runs', async () => {
  const { holder, lease, renewals, resume, onRevoked } = setUp();
  const second = scriptedLease();
  resume.mockRejectedValue(new Error('out of reach'));
  await vi.advanceTimersByTimeAsync(1_000);
  lease.renew.mockRejectedValue(new Error('reset'));
  renewals[0]?.reject(new Error('reset'));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(resume.mock.calls.length).toBeGreaterThan(15);
  expect(resume, 'its slots have been given up').toHaveBeenLastCalledWith(
    expect.objectContaining({ hasLapsed: true }),
  );
  expect(onRevoked).not.toHaveBeenCalled();
  resume.mockResolvedValueOnce(granted(second.lease, 9));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(second.lease.renew).toHaveBeenCalled();
  await holder.release('success');
});

it.each([
  ['fails', new Error('reset'), [25, 50, 100, 200, 400, 800, 1_600, 2_000, 2_000]],
  [
    'is not taken for overload',
    Object.assign(new Error('overloaded'), { overloaded: true }),
    [125, 250, 500, 1_000, 2_000, 2_000],
  ],
])('a resumption that %s is tried again later each time, up to 4 s', async (_, error, pauses) => {
  const { lease, renewals, resume, holder } = setUp();
  const at: number[] = [];
  resume.mockImplementation(() => {
    at.push(Date.now());
    return Promise.reject(error);
  });
  await vi.advanceTimersByTimeAsync(1_000);
  lease.renew.mockRejectedValue(new Error('reset'));
  renewals[0]?.reject(new Error('reset'));
  await vi.advanceTimersByTimeAsync(20_000);
  const waited = at.slice(1).map((instant, index) => instant - (at[index] ?? 0));
  expect(waited.slice(0, pauses.length)).toEqual(pauses);
  await holder.release('success');
  const attempts = at.length;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(at).toHaveLength(attempts);
});

it.each([
  ['fails', () => Promise.reject(new Error('reset')), [3_000, 3_500, 5_000, 8_000]],
  ['hangs', () => new Promise<never>(() => {}), [3_000, 6_000, 9_000, 12_000]],
])(
  'a release that %s is made by the lease id at once, and three times within ten seconds',
  async (_, answer, attempts) => {
    const { holder, lease, release } = setUp();
    const startedAt = Date.now();
    const at: number[] = [];
    lease.release.mockReturnValueOnce(new Promise(() => {}));
    release.mockImplementation(() => {
      at.push(Date.now() - startedAt);
      return answer();
    });
    const released = holder.release('failed');
    await vi.advanceTimersByTimeAsync(16_000);
    await released;
    expect(at).toEqual(attempts);
    const reported = ['t.1', 'failed', null, undefined, HELD];
    expect(release.mock.calls).toEqual([reported, reported, reported, reported]);
    expect(lease[Symbol.dispose]).toHaveBeenCalledOnce();
  },
);

it('a release that arrives by the lease id is not made again', async () => {
  const { holder, lease, release } = setUp();
  lease.release.mockRejectedValueOnce(new Error('reset'));
  release.mockRejectedValueOnce(new Error('reset'));
  const released = holder.release('success');
  await vi.advanceTimersByTimeAsync(20_000);
  await released;
  expect(release).toHaveBeenCalledTimes(2);
});

it('gives back once, whatever is asked of it', async () => {
  const { holder, lease } = setUp();
  await Promise.all([holder.release('success'), holder.release('cancelled')]);
  await holder.release('failed');
  expect(lease.release).toHaveBeenCalledExactlyOnceWith('success', null, undefined, true);
});

it.each([
  [6, true],
  [4, false],
])('of two answers the one with the larger attachment holds the lease: %d', async (other, wins) => {
  const { holder, lease } = setUp();
  const late = scriptedLease();
  await holder.adoptLate([Promise.resolve(granted(late.lease, other))]);
  expect(lease[Symbol.dispose]).toHaveBeenCalledTimes(wins ? 1 : 0);
  expect(late.lease[Symbol.dispose]).toHaveBeenCalledTimes(wins ? 0 : 1);
  await holder.release('success');
  expect((wins ? late.lease : lease).release).toHaveBeenCalledOnce();
});

it('an instance that has granted the lease at another member is told where its call runs', async () => {
  const { holder, resume } = setUp({ member: A });
  const [late, second] = [scriptedLease(), scriptedLease()];
  resume.mockResolvedValueOnce(granted(second.lease, 10, { member: A }));
  const adopted = holder.adoptLate([
    Promise.resolve(granted(late.lease, 9, { member: memberId('b') })),
    Promise.resolve(granted(scriptedLease().lease, 4, { member: memberId('b') })),
  ]);
  await vi.advanceTimersByTimeAsync(RESUME_MS);
  await adopted;
  const held = { ...HELD, member: A, attachment: 9 };
  expect(resume).toHaveBeenCalledExactlyOnceWith(held);
  expect(late.lease[Symbol.dispose]).toHaveBeenCalledOnce();
  await holder.release('success');
  expect(second.lease.release).toHaveBeenCalledOnce();
});

it('one that has granted it at the same member need not be told', async () => {
  const { holder, resume } = setUp({ member: A });
  await holder.adoptLate([Promise.resolve(granted(scriptedLease().lease, 9, { member: A }))]);
  expect(resume).not.toHaveBeenCalled();
});

it('an answer that comes after the release is let go of', async () => {
  const { holder } = setUp();
  const late = scriptedLease();
  await holder.release('success');
  await holder.adoptLate([Promise.resolve(granted(late.lease, 9))]);
  expect(late.lease[Symbol.dispose]).toHaveBeenCalledOnce();
});

it('says with its release whether anything was said of the lease by its id', async () => {
  const { holder, renewals, resume, lease } = setUp();
  resume.mockReturnValue(new Promise(() => {}));
  await vi.advanceTimersByTimeAsync(1_000);
  renewals[0]?.resolve('gone');
  await vi.advanceTimersByTimeAsync(RESUME_MS);
  expect(resume).toHaveBeenCalledOnce();
  await holder.release('success');
  expect(lease.release).toHaveBeenCalledExactlyOnceWith('success', null, undefined, false);
});

it('a report that went by the lease’s id was said as well, and none follows its end', async () => {
  const { holder, lease, report } = setUp();
  lease.report.mockRejectedValue(new Error('reset'));
  holder.report({ kind: 'served', retryAfterMs: null, slotsMax: null, hints: [] }, false);
  await holder.release('success');
  expect(report).toHaveBeenCalledOnce();
  expect(lease.release).toHaveBeenCalledExactlyOnceWith('success', null, undefined, false);
  holder.report({ kind: 'served', retryAfterMs: null, slotsMax: null, hints: [] }, false);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(report).toHaveBeenCalledOnce();
});

it('tells whose slot it has where it takes its lease up again', async () => {
  const { renewals, resume } = setUp({ heirOf: [leaseId('s.1')] });
  await vi.advanceTimersByTimeAsync(1_000);
  renewals[0]?.resolve('gone');
  await vi.advanceTimersByTimeAsync(RESUME_MS);
  expect(resume).toHaveBeenCalledExactlyOnceWith({ ...HELD, heirOf: ['s.1'] });
});

describe('a lease that is moved to another pool', () => {
  function otherPool(answer: ResumeAnswer | Error = GONE) {
    const resume = vi.fn<GroupRpc['resume']>(() =>
      answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer),
    );
    return { resume, pool: { resume } as Partial<GroupRpc> as GroupRpc };
  }

  const TO = {
    group: 'g',
    partition: 'acct_1',
    assumed: { slotsMax: 3, source: 'unknown' },
  } as const;

  it('is counted there before it is given back here, and ends there', async () => {
    const { holder, lease } = setUp();
    const there = scriptedLease();
    const { resume, pool } = otherPool(granted(there.lease, 9));
    holder.reportAnswer(200);
    holder.moveTo(() => pool, TO, 'acct_1');
    await vi.advanceTimersByTimeAsync(0);
    const moved = { ...HELD.holder, tenant: 'acct_1' };
    const held = { ...HELD, ...TO, holder: moved, attachment: null, hasLapsed: true };
    expect(resume).toHaveBeenCalledExactlyOnceWith(held);
    // Here it has told nothing: no call of this pool was served.
    expect(lease.release).toHaveBeenCalledExactlyOnceWith('unused', null);
    expect(lease[Symbol.dispose]).toHaveBeenCalledOnce();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(there.lease.renew).toHaveBeenCalledOnce();
    await holder.release('success');
    expect(lease.release).toHaveBeenCalledOnce();
    expect(there.lease.release).toHaveBeenCalledExactlyOnceWith('success', 200, undefined, true);
  });

  it('that ends meanwhile ends where it has come to', async () => {
    const { holder, lease } = setUp();
    const there = scriptedLease();
    holder.moveTo(() => otherPool(granted(there.lease, 9)).pool, TO, 'acct_1');
    await holder.release('success');
    expect(lease.release).toHaveBeenCalledExactlyOnceWith('unused', null);
    expect(there.lease.release).toHaveBeenCalledOnce();
  });

  it.each([
    ['does not know it', GONE],
    ['cannot be reached', new Error('reset')],
  ])('stays where it is if the other pool %s', async (_what, answer) => {
    const { holder, lease } = setUp();
    holder.moveTo(() => otherPool(answer).pool, TO, 'acct_1');
    await vi.advanceTimersByTimeAsync(0);
    expect(lease.release).not.toHaveBeenCalled();
    await holder.release('success');
    expect(lease.release).toHaveBeenCalledOnce();
  });
});
