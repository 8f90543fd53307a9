import { describe, expect, it } from 'vitest';
import { callsOf, storyOf } from '../../../dashboard/src/model/call-story.ts';
import {
  refusalWords,
  rejectionWords,
  WAIT_WORDS,
  type DecisionView,
} from '../../../dashboard/src/model/call-words.ts';
import type { LeaseOutcome, Rejection } from '../../../src/core/words/outcome.ts';
import type { RefusalKind } from '../../../src/core/words/signal.ts';
import type { WaitCause } from '../../../src/core/parts/decision-log.ts';

const GRANTED: DecisionView = {
  partition: null,
  lease: 'a.1',
  ticket: 'a',
  attempt: 1,
  lane: 'normal',
  tenant: 'team-search',
  agent: null,
  upstream: 'openai',
  model: 'gpt-4o',
  slots: 1,
  arrived_at: '2026-11-20T10:00:00.000Z',
  decided_at: '2026-11-20T10:00:02.000Z',
  waited_ms: 0,
  position_at_arrival: 0,
  waited_for: null,
  outcome: 'granted',
  rejection: null,
  upstream_status: null,
  upstream_said: null,
  upstream_retry_after_ms: null,
  ended: null,
  held_ms: null,
};

function reported(...attempts: Partial<DecisionView>[]): string[] {
  const [call] = callsOf(attempts.map((one) => ({ ...GRANTED, ...one })));
  return call === undefined ? [] : storyOf(call).map(({ text }) => text);
}

describe('the story of a call', () => {
  it('goes from its arrival to its end', () => {
    const [call] = callsOf([
      {
        ...GRANTED,
        waited_ms: 2_000,
        waited_for: 'slots',
        position_at_arrival: 3,
        upstream_said: 'served',
        upstream_status: 200,
        ended: 'success',
        held_ms: 3_300,
      },
    ]);
    expect(call && storyOf(call)).toEqual([
      { at: GRANTED.arrived_at, text: 'It arrived. 3 calls were ahead of it.', tone: 'plain' },
      {
        at: null,
        text: 'It waited 2 s. All slots were in use, or fewer were free than the call needs.',
        tone: 'plain',
      },
      { at: GRANTED.decided_at, text: 'It was granted a slot.', tone: 'good' },
      { at: null, text: 'openai responded with 200.', tone: 'good' },
      {
        at: '2026-11-20T10:00:05.300Z',
        text: 'The response ended, and the slot was released, after 3.3 s.',
        tone: 'good',
      },
    ]);
  });

  it.each([
    [0, 'It arrived. No calls were ahead of it.'],
    [1, 'It arrived. One call was ahead of it.'],
    [12, 'It arrived. 12 calls were ahead of it.'],
  ])('says where it stood with %i ahead', (ahead, text) => {
    expect(reported({ position_at_arrival: ahead })[0]).toBe(text);
  });

  it('says that it was granted at once, and how many slots', () => {
    expect(reported({ slots: 3 })).toContain('It was granted 3 slots immediately.');
  });

  const CAUSES: Readonly<Record<WaitCause, string>> = {
    operator_pause: 'operator',
    upstream_pause: 'backing off',
    breaker: 'breaker',
    members_out: 'Every member was ejected',
    settling: 'reset',
    cap: 'tenant',
    slots: 'All slots',
    rates: 'request or token limit',
    member: 'Its preferred member',
    order: 'other calls went first',
    elsewhere: 'another group that the call needs',
  };
  it.each(Object.entries(CAUSES))('says why it waited: %s', (cause, words) => {
    const waited_for = cause as WaitCause;
    expect(reported({ waited_for, waited_ms: 500 })[1]).toMatch(
      new RegExp(`^It waited 500 ms\\..*${words}`),
    );
    expect(WAIT_WORDS[waited_for]).not.toBe('');
  });

  it.each([
    ['left', 'The caller left before a slot was granted.'],
    ['moved', 'The groups had changed, so it was routed again and kept its age.'],
  ] as const)('says what became of it: %s', (outcome, text) => {
    expect(reported({ outcome }).at(-1)).toBe(text);
  });

  const ENDS: Readonly<Record<LeaseOutcome | 'expired', string>> = {
    success: 'The response ended, and the slot was released, after 1 s.',
    cancelled: 'The caller left or the call was cut short, and the slot was released, after 1 s.',
    failed: 'The upstream failed or refused it, and the slot was released, after 1 s.',
    refused: 'The upstream refused this particular call, and the slot was released, after 1 s.',
    unused: 'The upstream was never called, and the slot was released unused, after 1 s.',
    expired: 'The lease expired because its holder was gone, and the slot was released, after 1 s.',
  };
  it.each(Object.entries(ENDS))('says how it ended: %s', (ended, text) => {
    expect(reported({ ended: ended as LeaseOutcome, held_ms: 1_000 }).at(-1)).toBe(text);
  });

  it('says that it still holds its slot', () => {
    expect(reported({}).at(-1)).toBe('It still holds its slot.');
  });

  it('joins the tries of one call, the first one first', () => {
    const again = { lease: 'a.11', decided_at: '2026-11-20T10:00:09.000Z', waited_ms: 4_000 };
    const refusal = {
      upstream_said: 'concurrency',
      upstream_status: 429,
      upstream_retry_after_ms: 2_000,
      ended: 'failed',
      held_ms: 10,
    } as const;
    const texts = reported({ ...again, waited_for: 'upstream_pause' }, refusal);
    expect(texts[2]).toBe(
      'openai refused it with 429: too many concurrent calls. It asked for a pause of 2 s.',
    );
    expect(texts[4]).toBe('It was queued again, for attempt 2. No calls were ahead of it.');
  });

  it('keeps calls apart, in the order of the list', () => {
    const calls = callsOf([{ ...GRANTED, ticket: 'b' }, GRANTED, { ...GRANTED, ticket: 'b' }]);
    expect(calls.map(({ ticket, attempts }) => [ticket, attempts.length])).toEqual([
      ['b', 2],
      ['a', 1],
    ]);
  });
});

/** By reason, so that a new one is missing here until somebody finds words for it. */
const REJECTIONS: {
  readonly [R in Rejection['reason']]: readonly (readonly [
    Extract<Rejection, { reason: R }>,
    string,
  ])[];
} = {
  queue_full: [
    [
      { reason: 'queue_full', queueLengthMax: 10, of: 'group', retryAfterMs: 1 },
      'the queue was full (10 calls)',
    ],
    [
      { reason: 'queue_full', queueLengthMax: 3, of: 'tenant', retryAfterMs: 1 },
      'the queue of its tenant was full (3 calls)',
    ],
    [
      { reason: 'queue_full', queueLengthMax: 2, of: 'agent', retryAfterMs: 1 },
      'the queue of its agent was full (2 calls)',
    ],
  ],
  queue_timeout: [
    [
      { reason: 'queue_timeout', waitedMs: 60_000, retryAfterMs: 1 },
      'it timed out in the queue after 1 min',
    ],
  ],
  infeasible: [
    [
      { reason: 'infeasible', estimateMs: 9_000, retryAfterMs: 1 },
      'its expected wait of about 9 s exceeded its deadline',
    ],
  ],
  busy: [
    [
      { reason: 'busy', slotsMax: 5, retryAfterMs: 1 },
      'no slot was free, and the call did not allow queueing',
    ],
  ],
  paused: [
    [
      { reason: 'paused', waitedMs: 1, retryAfterMs: null, until: null },
      'the group was paused until after the deadline, by an operator',
    ],
    [
      { reason: 'paused', waitedMs: 1, retryAfterMs: 1, until: 1_800_000_000_000 },
      'the group was paused until after the deadline, because its upstream was overloaded',
    ],
  ],
  upstream_limited: [
    [
      {
        reason: 'upstream_limited',
        waitedMs: 1,
        retryAfterMs: null,
        until: 1_800_000_000_000,
        probeAt: null,
        words: 'Used up',
      },
      'the upstream refused calls because of its own limit until after the deadline, with the message “Used up”',
    ],
    [
      {
        reason: 'upstream_limited',
        waitedMs: 1,
        retryAfterMs: 1,
        until: 1_800_000_000_000,
        probeAt: null,
        words: null,
      },
      'the upstream refused calls because of its own limit until after the deadline',
    ],
  ],
  breaker_open: [
    [
      { reason: 'breaker_open', retryAfterMs: 1 },
      'too many calls had failed at the upstream, and the breaker stayed open until after the deadline',
    ],
  ],
  members_out: [
    [{ reason: 'members_out', retryAfterMs: 1 }, 'every member was ejected or disabled'],
  ],
  budget_exhausted: [
    [
      {
        reason: 'budget_exhausted',
        window: 'day',
        limitUsd: 0.02,
        leftUsd: 0.01018,
        wantedUsd: 0.0103,
        retryAfterMs: null,
      },
      'it exceeded the budget of the day, $0.02: $0.0102 left, about $0.0103 needed',
    ],
    [
      {
        reason: 'budget_exhausted',
        window: 'hour',
        limitUsd: 5,
        leftUsd: 0,
        wantedUsd: 1,
        retryAfterMs: null,
      },
      'the budget of the hour, $5, was spent',
    ],
  ],
  draining: [
    [{ reason: 'draining', retryAfterMs: 1 }, 'the group was draining and accepted no new calls'],
  ],
  cancelled: [[{ reason: 'cancelled', retryAfterMs: null }, 'an operator cancelled it']],
  nested: [
    [
      { reason: 'nested', retryAfterMs: null },
      'it would have waited for its parent call, which waits for it',
    ],
  ],
  never_fits: [
    [
      { reason: 'never_fits', slotsPerCallMax: 4, retryAfterMs: null },
      'it needed more slots than one call may use (4)',
    ],
  ],
};

describe('the words for a rejection', () => {
  it.each(Object.values(REJECTIONS).flat())('of $reason are a reason', (rejection, words) => {
    expect(rejectionWords({ ...rejection })).toBe(words);
    expect(reported({ outcome: 'rejected', rejection: { ...rejection } }).at(-1)).toBe(
      `It was rejected, because ${words}.`,
    );
  });

  it('need no figures', () => {
    expect(rejectionWords({ reason: 'queue_full' })).toBe('the queue was full');
    expect(rejectionWords({ reason: 'budget_exhausted' })).toBe('the budget was spent');
  });

  it('of a reason that is not known yet are the reason itself', () => {
    expect(rejectionWords({ reason: 'moon_too_full' })).toBe('moon too full');
  });
});

const KINDS: Readonly<Record<RefusalKind, string>> = {
  unauthorized: 'it does not accept the key',
  quota: 'the account has no quota left',
  egress: 'it does not serve the location where the Worker runs',
  never_fits: 'the call is larger than it accepts',
  long_window: 'a daily or plan limit is used up',
  concurrency: 'too many concurrent calls',
  overload: 'it is short of capacity',
  tokens: 'too many tokens per minute',
  requests: 'too many requests per minute',
  ramp: 'traffic grew too quickly',
  unknown: 'it gave no reason',
  error: 'it failed, or the connection broke',
};

describe('the words for a refusal of the upstream', () => {
  it.each(Object.entries(KINDS))('of kind %s', (kind, words) => {
    expect(refusalWords(kind)).toBe(words);
    expect(reported({ upstream_said: kind as RefusalKind, upstream_status: 429 })).toContain(
      `openai refused it with 429: ${words}.`,
    );
  });

  it('of a kind that is not known yet are the kind itself', () => {
    expect(refusalWords('too_late')).toBe('too late');
  });
});
