// How the calls of the last minutes fared: of one pool, of several, and of one that rests.
import { describe, expect, it } from 'vitest';
import type { HistoryPoint } from '../../../src/contract/history.ts';
import type { RefusalCount } from '../../../src/contract/reasons.ts';
import type { Lately } from '../../../src/contract/status.ts';
import { latelyOf, joinInTime } from '../../../src/history/points.ts';
import { stateOf } from '../../../src/overview/group-status.ts';
import { joinLately, restingLately, withRefusedHere } from '../../../src/overview/joins.ts';
import { groupStatus } from '../dashboard/group-status.ts';

const MINUTE = 60_000;
const NOW = Date.parse('2026-11-28T10:10:30Z');
const iso = (minute: string) => `2026-11-28T10:${minute}.000Z`;

/** A minute of a pool: `minute` past ten. */
function point(minute: number, counts: Partial<HistoryPoint>): HistoryPoint {
  return {
    at: Date.parse('2026-11-28T10:00:00Z') + minute * MINUTE,
    inUseMax: 1,
    slotMs: 0,
    limit: 1,
    limitConfigured: 1,
    queuedMax: 0,
    waits: [],
    granted: 0,
    rejected: {},
    refusals: {},
    ended: {},
    inputTokens: 0,
    outputTokens: 0,
    usd: 0,
    waitedFor: {},
    waitedForMs: {},
    tenantsWaited: [],
    tenantsHeld: [],
    ...counts,
  };
}

const served = (minute: number, success = 1) => point(minute, { ended: { success } });
const answered = (minute: number, status: string, calls: number) =>
  point(minute, { ended: { success: calls }, answeredErrors: { [status]: calls } });
const refused = (minute: number, count: number) =>
  point(minute, { refusals: { requests: count }, ended: { failed: count } });

describe('one pool', () => {
  it('has nothing to say without a call in the last 10 minutes', () => {
    expect(latelyOf([], NOW)).toBeNull();
    expect(latelyOf([refused(0, 9)], NOW)).toBeNull();
  });

  it('fails if all calls since the last minute with a served one were refused', () => {
    expect(latelyOf([served(2, 4), refused(3, 5), refused(9, 7)], NOW)).toEqual({
      served: 4,
      served_at: iso('03:00'),
      failing_since: iso('03:00'),
      failed_at: iso('10:00'),
      is_failing: true,
      refusals: { requests: 12 },
      rejected: {},
      ended: { failed: 12 },
    });
  });

  it('counts no failure before a served call, nor in its minute', () => {
    const all = [refused(4, 9), joinInTime(refused(9, 5), served(9)), refused(10, 1)];
    expect(latelyOf(all, NOW)).toMatchObject({ is_failing: false, refusals: { requests: 1 } });
    expect(latelyOf(all.slice(0, 2), NOW)).toMatchObject({ failing_since: null, refusals: {} });
  });

  it.each<[string, HistoryPoint[], boolean]>([
    ['one call that was refused, if it is the only one', [refused(10, 1)], true],
    ['no call for two minutes', [refused(7, 50)], false],
    ['calls that Headgate refused', [point(10, { rejected: { never_fits: 1 } })], true],
    ['calls of clients that do not wait', [point(10, { rejected: { busy: 9 } })], false],
    ['calls of a group that drains', [point(10, { rejected: { draining: 9 } })], false],
    ['calls beyond a budget', [point(10, { rejected: { budget_exhausted: 9 } })], false],
    ['calls of a paused group', [point(10, { rejected: { paused: 9 } })], false],
    ['a caller who left', [point(10, { ended: { cancelled: 1 } })], false],
    ['callers who all left', [point(9, { ended: { cancelled: 3 } })], true],
    ['two answers with an error status', [answered(10, '401', 2)], false],
    ['answers with an error status alone', [answered(9, '401', 2), answered(10, '404', 1)], true],
    ['such answers after a served call', [served(8), answered(10, '400', 3)], true],
    ['such answers beside served calls', [joinInTime(served(10), answered(10, '400', 9))], false],
  ])('%s', (_title, all, isFailing) => {
    expect(latelyOf(all, NOW)?.is_failing ?? false).toBe(isFailing);
  });
});

describe('several pools', () => {
  const of = (...all: HistoryPoint[]): Lately[] => [latelyOf(all, NOW)].flatMap((one) => one ?? []);

  it('do not fail while one of them serves calls', () => {
    const { lately } = joinLately([...of(refused(9, 6)), ...of(served(10))]);
    expect(lately).toMatchObject({ served: 1, is_failing: false, failing_since: null });
  });

  it('fail together since the last served call of any', () => {
    const { lately } = joinLately([...of(refused(4, 6), refused(10, 1)), ...of(served(6))]);
    expect(lately).toMatchObject({
      served: 1,
      is_failing: true,
      failing_since: iso('07:00'),
      refusals: { requests: 7 },
    });
  });

  it('add up answers with an error status', () => {
    const { lately } = joinLately([...of(answered(9, '401', 3)), ...of(answered(10, '401', 4))]);
    expect(lately).toMatchObject({ is_failing: true, answered_errors: { '401': 7 } });
    const one = of(joinInTime(answered(9, '401', 3), answered(9, '404', 1)));
    expect(one).toMatchObject([{ served: 0, answered_errors: { '401': 3, '404': 1 } }]);
  });

  it('fail if one fails and the others had no calls', () => {
    expect(joinLately(of(refused(10, 6))).lately?.is_failing).toBe(true);
    expect(joinLately([])).toEqual({});
  });
});

describe('calls that Headgate refused before a pool', () => {
  const refusal = (changes: Partial<RefusalCount>): RefusalCount => ({
    reason: 'price_unknown',
    key: null,
    key_kind: null,
    team: null,
    group: 'chat',
    upstream: null,
    model: null,
    count: 9,
    first_at: iso('09:10'),
    last_at: iso('10:20'),
    message: '',
    request_ids: [],
    ...changes,
  });
  const fails = (all: readonly HistoryPoint[], changes: Partial<RefusalCount> = {}) =>
    withRefusedHere(latelyOf(all, NOW) ?? undefined, [refusal(changes)], NOW).lately;

  it('are failures of the group', () => {
    expect(fails([])).toMatchObject({ is_failing: true, rejected: { price_unknown: 9 } });
  });

  it.each<[string, readonly HistoryPoint[], Partial<RefusalCount>]>([
    ['pools count their reason', [], { reason: 'queue_full' }],
    ['a call was served in their minute', [served(10)], {}],
    ['they were minutes ago', [], { last_at: iso('08:00') }],
    ['calls were served since', [served(9)], { last_at: iso('09:50') }],
  ])('are none if %s', (_title, all, changes) => {
    expect(fails(all, changes)?.is_failing ?? false).toBe(false);
  });
});

it('a pool that rests fails for two minutes, and is forgotten after ten', () => {
  const [said] = [latelyOf([refused(10, 6)], NOW)].flatMap((one) => one ?? []);
  expect(restingLately(said, MINUTE).lately?.is_failing).toBe(true);
  expect(restingLately(said, 2 * MINUTE).lately).toMatchObject({
    is_failing: false,
    refusals: { requests: 6 },
  });
  expect(restingLately(said, 10 * MINUTE)).toEqual({});
});

describe('the state of a group that serves nothing', () => {
  const lately = (changes: Partial<Lately>): Lately => ({
    served: 0,
    served_at: null,
    failing_since: iso('09:00'),
    failed_at: iso('10:30'),
    is_failing: true,
    refusals: {},
    rejected: {},
    ended: {},
    ...changes,
  });
  const FULL = { in_use: 5, queued: 1 };
  const PAUSED = { paused_until: '2026-11-28T11:00:00Z' };

  it.each<[string, Parameters<typeof groupStatus>[0]]>([
    ['refused by upstream', { lately: lately({ refusals: { quota: 1 } }) }],
    ['refused by upstream', { lately: lately({ refusals: { requests: 276 } }), ...FULL }],
    ['refused by upstream', { lately: lately({ answered_errors: { '401': 3 } }) }],
    [
      'nothing served',
      { lately: lately({ refusals: { error: 9 }, answered_errors: { '400': 1 } }) },
    ],
    ['full', { lately: lately({ refusals: { requests: 1 } }), ...FULL }],
    ['paused', { lately: lately({ refusals: { requests: 276 } }), ...PAUSED }],
    ['broken', { lately: lately({ refusals: { error: 9 } }), breaker: 'open' }],
    ['nothing served', { lately: lately({ refusals: { error: 9 }, ended: { failed: 9 } }) }],
    ['nothing served', { lately: lately({ rejected: { never_fits: 1 } }) }],
    ['nothing served', { lately: lately({ rejected: { queue_timeout: 9 } }), ...FULL }],
    ['flowing', { lately: lately({ refusals: { requests: 9 }, is_failing: false }) }],
  ])('is %s', (state, changes) => {
    expect(stateOf(groupStatus({ ...changes, state: 'flowing' }), [groupStatus(changes)])).toBe(
      state,
    );
  });
});
