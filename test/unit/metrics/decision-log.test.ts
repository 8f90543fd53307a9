/** Counts of a group's calls and its memory of each, on a virtual clock. */
import { describe, expect, it } from 'vitest';
import { quantileMs } from '../../../src/core/parts/totals.ts';
import { instant } from '../../../src/core/words/ids.ts';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import { DECISIONS_MAX, latestFirst, type Decision } from '../../../src/core/parts/decision-log.ts';
import { START, TestGroup } from '../../support/core-builders.ts';

function lastDecision(group: TestGroup): Decision | undefined {
  return latestFirst(group.state.decisions)[0];
}

describe('counters', () => {
  it('tell how long calls waited and how long they held their slots', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('a', 'b');
    group.advance(3_000);
    group.release('a');
    group.advance(500);
    group.release('b', 'failed');
    const { wait, hold, granted, ended } = group.state.totals;
    expect({ granted, ended }).toEqual({ granted: 2, ended: { success: 1, failed: 1 } });
    expect(wait.sumMs).toBe(3_000);
    expect(hold.sumMs).toBe(3_500);
    expect(quantileMs(wait.counts, 1)).toBe(5_120);
  });

  it('leave out the hold of a call that never was', () => {
    const group = new TestGroup();
    group.ask('a');
    group.advance(1_000);
    group.release('a', 'unused');
    expect(group.state.totals.hold.sumMs).toBe(0);
    expect(group.state.totals.ended).toEqual({ unused: 1 });
  });

  it('tell another attempt of a call from its first', () => {
    const group = new TestGroup();
    group.ask('a');
    group.release('a', 'failed');
    group.ask('a', { attempt: 2 });
    expect(group.state.totals).toMatchObject({ granted: 2, grantedAgain: 1 });
  });

  it('count who left and who was sent elsewhere', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('a', 'b', 'c', 'd');
    group.cancel('b');
    group.move();
    expect(group.state.totals).toMatchObject({ left: 1, moved: 2 });
  });

  it('count tokens and cost as they are settled', () => {
    const group = new TestGroup({ isMetered: true });
    group.askAll('a', 'b');
    const settlement = { requests: 1, inputTokens: 70, outputTokens: 30, usd: 0.5, seen: null };
    group.release('a', 'success', 1, settlement);
    group.release('b', 'unused');
    expect(group.state.totals).toMatchObject({ inputTokens: 70, outputTokens: 30, usd: 0.5 });
  });

  it('count the wait of callers that come back after a reset from when they came', () => {
    const before = TestGroup.stored({ slotsMax: 1 });
    before.askAll('a', 'b');
    before.advance(10_000);
    const group = before.restart();
    group.ask('b', { enqueuedMs: 0 });
    group.resume('a');
    group.release('a');
    group.advance(600);
    expect(group.state.totals.wait.sumMs).toBe(10_600);
  });
});

describe('the decision of a call', () => {
  it('tells how it came to its slot, and what became of it', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('a', 'b', 'c');
    group.advance(2_000);
    group.release('a');
    group.report('b', { kind: 'requests', retryAfterMs: 700 });
    group.advance(100);
    group.send({
      kind: 'release',
      leaseId: group.lease('b').id,
      outcome: 'failed',
      settlement: null,
      status: 429,
    });
    expect(latestFirst(group.state.decisions).map(({ leaseId }) => leaseId)).toEqual([
      'b.1',
      'a.1',
    ]);
    expect(lastDecision(group)).toMatchObject({
      decided: 'granted',
      positionAtArrival: 0,
      waitedFor: 'slots',
      arrivedAt: START,
      decidedAt: START + 2_000,
      upstreamSignal: { kind: 'requests', retryAfterMs: 700 },
      upstreamStatus: 429,
      ended: 'failed',
      endedAt: START + 2_100,
    });
  });

  it('tells where it stood', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('a', 'b', 'c');
    group.cancel('c');
    expect(lastDecision(group)).toMatchObject({ decided: 'left', positionAtArrival: 1 });
  });

  it('of one who did not wait has nothing to explain', () => {
    const group = new TestGroup();
    group.ask('a');
    expect(lastDecision(group)).toMatchObject({ waitedFor: null, positionAtArrival: 0 });
    expect(lastDecision(group)?.ended).toBeNull();
  });

  it('tells that a lease lapsed', () => {
    const group = new TestGroup();
    group.ask('a');
    group.advance(60_000);
    expect(lastDecision(group)?.ended).toBe('expired');
  });

  it.each([
    ['at the door', { isDraining: true }, 'draining'],
    ['in the queue', { queueLengthMax: 0, slotsMax: 1 }, 'queue_full'],
  ] as const)('of one who was refused %s holds the reason', (_where, settings, reason) => {
    const group = new TestGroup(settings);
    group.askAll('a', 'b');
    expect(lastDecision(group)).toMatchObject({ decided: 'rejected', rejection: { reason } });
  });

  it('is not kept of a try that was declined', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.ask('a');
    group.ask('b', { isTry: true });
    expect(latestFirst(group.state.decisions)).toHaveLength(1);
  });

  it(`is forgotten after ${DECISIONS_MAX} others`, () => {
    const group = new TestGroup({ slotsMax: 1 });
    for (let call = 0; call < DECISIONS_MAX + 20; call += 1) {
      group.ask(`call-${call}`);
      group.release(`call-${call}`);
    }
    const kept = latestFirst(group.state.decisions).map(({ ticket }) => ticket.id);
    expect(kept).toHaveLength(DECISIONS_MAX);
    expect([kept[0], kept.at(-1)]).toEqual([`call-${DECISIONS_MAX + 19}`, 'call-20']);
  });
});

describe('why a call waits', () => {
  const cases: readonly (readonly [string, Partial<GroupSettings>, (group: TestGroup) => void])[] =
    [
      ['slots', { slotsMax: 1 }, (group) => group.ask('a')],
      ['operator_pause', { paused: true }, () => {}],
      [
        'upstream_pause',
        {},
        (group) => {
          group.ask('a');
          group.report('a', { kind: 'requests', retryAfterMs: 5_000 });
        },
      ],
      ['cap', { slotsMaxEach: 1, slotsMax: 5 }, (group) => group.ask('a')],
      ['settling', {}, (group) => (group.state.grantsFrom = instant(START + 500))],
      [
        'breaker',
        {},
        (group) => {
          for (let call = 0; call < 10; call += 1) {
            group.ask(`f${call}`);
            group.report(`f${call}`, { kind: 'error' });
            group.release(`f${call}`, 'failed');
          }
        },
      ],
      [
        'order',
        { slotsMaxEach: 2, slotsMax: 3, slotsPerCallMax: 3 },
        (group) => {
          group.ask('a', { tenant: 'wide', slots: 1 });
          group.ask('b', { tenant: 'other', slots: 1 });
          // Two slots where one is left: whoever comes after it stands behind it.
          group.ask('c', { tenant: 'third', slots: 2, lane: 'high' });
        },
      ],
      [
        'rates',
        {
          isMetered: true,
          rates: {
            rpm: 1,
            rpd: null,
            tpm: null,
            tpd: null,
            itpm: null,
            otpm: null,
            startsPerS: null,
            burstMs: 10_000,
          },
        },
        (group) => {
          group.ask('a');
          group.release('a');
        },
      ],
    ];
  it.each(cases)('%s', (cause, settings, prepare) => {
    const group = new TestGroup({ timeoutMs: 600_000, ...settings });
    prepare(group);
    group.ask('late');
    group.cancel('late');
    expect(lastDecision(group)).toMatchObject({ leaseId: 'late.1', waitedFor: cause });
  });
});
