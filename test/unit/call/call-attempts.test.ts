import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { RefusalKind, UpstreamSignal } from '../../../src/core/words/signal.ts';
import { RetryBudget, CallAttempts } from '../../../src/call/attempts/call-attempts.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

function attemptsOf(retryCount?: string): CallAttempts {
  return new CallAttempts(
    new Headers(retryCount === undefined ? {} : { 'x-stainless-retry-count': retryCount }),
  );
}

function signal(kind: RefusalKind, retryAfterMs: number | null = null): UpstreamSignal {
  return { kind, retryAfterMs, slotsMax: null, hints: [] };
}

/** A budget that never runs out. */
function richBudget(): RetryBudget {
  const budget = new RetryBudget();
  for (let at = 0; at < 1_000; at += 1) budget.noteCall();
  return budget;
}

test('a call has been sent as often as that was noted', () => {
  const attempts = attemptsOf();
  expect(attempts.sent).toBe(0);
  attempts.noteSent();
  attempts.noteSent();
  expect(attempts.sent).toBe(2);
});

test.each([
  ['attempt=1; max=3', true],
  ['attempt=2; max=3', false],
  ['ttl=20261127T190000Z; attempt=3; max=3', false],
  ['attempt=x', true],
  ['max=3', true],
])('a retry of an SDK of AWS is not multiplied: %s', (said, mayRetry) => {
  const attempts = new CallAttempts(new Headers({ 'amz-sdk-request': said }));
  expect(attempts.mayRetry(2, richBudget(), 1)).toBe(mayRetry);
});

describe('a refused call', () => {
  test.each([
    ['requests', 3],
    ['unknown', 3],
    ['concurrency', 6],
  ] as const)('for %s goes back into the queue %i times', (kind, times) => {
    const attempts = attemptsOf();
    for (let at = 0; at < times; at += 1) expect(attempts.mayReenter(kind)).toBe(true);
    expect(attempts.mayReenter(kind)).toBe(false);
    expect(attempts.mayReenter('requests')).toBe(false);
  });

  test('goes back though its SDK has sent it before, and though it was tried again', () => {
    const attempts = attemptsOf('2');
    expect(attempts.mayReenter('requests')).toBe(true);
    const retried = attemptsOf();
    retried.mayRetry(1, richBudget(), 1);
    expect(retried.mayReenter('requests')).toBe(true);
  });

  test.each<RefusalKind>(['requests', 'tokens', 'ramp', 'unknown'])(
    'stops the group of an upstream once: %s',
    (kind) => {
      const attempts = attemptsOf();
      expect(attempts.noteRefused('a', signal(kind))).toBe(false);
      expect(attempts.noteRefused('a', signal('requests', 1_000))).toBe(true);
      expect(attempts.noteRefused('b', signal('requests', 1_000))).toBe(false);
      expect(attempts.noteRefused('b', signal(kind))).toBe(true);
    },
  );

  test.each<RefusalKind>(['overload', 'long_window'])(
    'has stopped it only if the upstream said for how long: %s',
    (kind) => {
      const attempts = attemptsOf();
      expect(attempts.noteRefused('a', signal(kind))).toBe(false);
      expect(attempts.noteRefused('a', signal(kind, 1_000))).toBe(false);
      expect(attempts.noteRefused('a', signal(kind, 1_000))).toBe(true);
    },
  );

  test.each<RefusalKind>(['concurrency', 'error', 'egress', 'quota', 'never_fits'])(
    'has stopped nobody: %s',
    (kind) => {
      const attempts = attemptsOf();
      expect(attempts.noteRefused('a', signal(kind, 1_000))).toBe(false);
      expect(attempts.noteRefused('a', signal('tokens', 1_000))).toBe(false);
      expect(attempts.noteRefused('a', signal(kind, 1_000))).toBe(false);
    },
  );
});

describe('a call that failed', () => {
  test.each([0, 1, 3])('is tried again at most %i times', (max) => {
    const attempts = attemptsOf();
    const budget = richBudget();
    const granted = Array.from({ length: 6 }, () => attempts.mayRetry(max, budget, 1));
    expect(granted.filter(Boolean)).toHaveLength(max);
  });

  test.each([
    ['1', false],
    ['7', false],
    ['0', true],
    ['', true],
    ['-1', true],
    ['one', true],
    ['1e3', true],
    ['99999', true],
  ])('and whose SDK says that it sends it for the %j time: %s', (count, mayRetry) => {
    expect(attemptsOf(count).mayRetry(1, richBudget(), 1)).toBe(mayRetry);
  });

  test.each([
    [0, 1],
    [1, 1],
    [3, 3],
  ])('at a member goes on to others, with %i retries %i times', (max, times) => {
    const attempts = attemptsOf();
    const budget = richBudget();
    const granted = Array.from({ length: 6 }, () => attempts.mayHop(max, budget, 1));
    expect(granted.filter(Boolean)).toHaveLength(times);
    expect(attempts.mayRetry(max, budget, 1)).toBe(false);
  });

  test('at a member goes on once whatever is left of the budget, and then within it', () => {
    const attempts = attemptsOf();
    const budget = new RetryBudget();
    expect([1, 2, 3].map(() => attempts.mayHop(10, budget, 0))).toEqual([true, false, false]);
    expect([1, 2, 3].map(() => attempts.mayHop(10, budget, 0.1))).toEqual([true, true, false]);
  });

  test('at a member goes on to none if its SDK sends it again anyway', () => {
    expect(attemptsOf('1').mayHop(3, richBudget(), 1)).toBe(false);
  });

  test('takes nothing of the budget if it may not be tried again', () => {
    const budget = new RetryBudget();
    attemptsOf('1').mayRetry(1, budget, 0.1);
    attemptsOf().mayRetry(0, budget, 0.1);
    expect([1, 2, 3].map(() => budget.take(0.1))).toEqual([true, true, false]);
  });

  test('waits longer before each retry, by chance up to twice as long, and no longer than 4 s', () => {
    const pausesAt = (random: number): number[] => {
      vi.spyOn(Math, 'random').mockReturnValue(random);
      const attempts = attemptsOf();
      return Array.from({ length: 6 }, () => {
        attempts.mayRetry(10, richBudget(), 1);
        return attempts.pauseMs();
      });
    };
    expect(pausesAt(0)).toEqual([250, 500, 1_000, 2_000, 2_000, 2_000]);
    expect(pausesAt(1)).toEqual([500, 1_000, 2_000, 4_000, 4_000, 4_000]);
  });
});

describe('the budget of retries', () => {
  function taken(budget: RetryBudget, share: number): number {
    let count = 0;
    while (count < 100 && budget.take(share)) count += 1;
    return count;
  }

  test('is two before there were calls', () => {
    expect(taken(new RetryBudget(), 0.1)).toBe(2);
  });

  test('of 0 is none', () => {
    expect(taken(richBudget(), 0)).toBe(0);
  });

  test('saves up 50 at the most', () => {
    const budget = new RetryBudget();
    for (let at = 0; at < 100_000; at += 1) budget.noteCall();
    expect(taken(budget, 1)).toBe(50);
  });

  test('never gives more than its part of the calls, whatever comes in which order', () => {
    fc.assert(
      fc.property(
        fc.array(fc.boolean(), { maxLength: 400 }),
        fc.constantFrom(0.05, 0.1, 0.5, 1),
        (isCall, share) => {
          const budget = new RetryBudget();
          let calls = 0;
          let retries = 0;
          for (const one of isCall) {
            if (one) {
              budget.noteCall();
              calls += 1;
            } else if (budget.take(share)) retries += 1;
          }
          expect(retries).toBeLessThanOrEqual(2 + calls * share + 1e-6);
        },
      ),
    );
  });

  test('gives the tenth of the calls that it has earned', () => {
    const budget = new RetryBudget();
    taken(budget, 0.1);
    let retries = 0;
    for (let at = 0; at < 1_000; at += 1) {
      budget.noteCall();
      if (budget.take(0.1)) retries += 1;
    }
    expect(retries).toBeGreaterThanOrEqual(99);
    expect(retries).toBeLessThanOrEqual(100);
  });
});

test('a group hears of its own members alone that refused a call, and for what takes them out', () => {
  const { refusedMembers } = attemptsOf();
  refusedMembers.noteSaid('one', 'a', 'unauthorized', 1_000);
  refusedMembers.noteSaid('one', 'b', 'concurrency', 2_000);
  refusedMembers.noteSaid('one', 'c', 'quota', 3_000);
  // It has spilled to a group with a member of the same name.
  refusedMembers.noteSaid('two', 'a', 'egress', 4_000);
  const blamed = refusedMembers.blamedIn('one', 5_000);
  expect(blamed).toEqual([
    { member: 'a', kind: 'unauthorized', agoMs: 4_000 },
    { member: 'c', kind: 'quota', agoMs: 2_000 },
  ]);
});
