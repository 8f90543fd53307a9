import { describe, expect, it } from 'vitest';
import {
  chartsOf,
  markerWords,
  summaryOf,
  totalInWords,
  valueOf,
  type Chart,
  type HistoryView,
} from '../../../dashboard/src/model/history-charts.ts';
import {
  HISTORY_RANGES,
  linkOf,
  ownRange,
  rangeOf,
  rangeStartMs,
  untilNextMinuteMs,
  widerThan,
} from '../../../dashboard/src/model/history-range.ts';

type DashboardHistoryChartsPoint = HistoryView['points'][number];

const POINT: DashboardHistoryChartsPoint = {
  at: '2026-11-20T10:01:00.000Z',
  in_use_max: 4,
  in_use_mean: 2.5,
  limit: 5,
  limit_configured: 5,
  queued_max: 7,
  wait_p50_ms: 100,
  wait_p95_ms: 900,
  wait_p99_ms: 1_000,
  granted: 12,
  rejected: { queue_timeout: 2 },
  refusals: { concurrency: 1 },
  input_tokens: 300,
  output_tokens: 40,
  cost_usd: 0.5,
  waited_for: {},
  waited_for_ms: {},
  tenants_waited: [],
  tenants_held: [],
};

function history(
  points: readonly DashboardHistoryChartsPoint[],
  gaps: HistoryView['gaps'] = [],
): HistoryView {
  const to = '2026-11-20T10:03:30.000Z';
  return { from: '2026-11-20T10:00:00.000Z', to, step_s: 60, points, gaps };
}

function chart(points: readonly DashboardHistoryChartsPoint[], id: string): Chart {
  const found = chartsOf(history(points)).charts.find((one) => one.id === id);
  if (found === undefined) throw new Error(`There is no chart ${id}.`);
  return found;
}

function values(points: readonly DashboardHistoryChartsPoint[], id: string, label: string) {
  return chart(points, id).lines.find((line) => line.label === label)?.values;
}

describe('the charts of a history', () => {
  it('have one axis of every step, the one that is not over included', () => {
    const { steps, end } = chartsOf(history([]));
    expect(steps.map((at) => at - (steps[0] ?? 0))).toEqual([0, 60, 120, 180]);
    expect(end - (steps[0] ?? 0)).toBe(210);
  });

  it.each([
    ['slots', 'max in use', [0, 4, 0, 0]],
    ['slots', 'mean in use', [0, 2.5, 0, 0]],
    ['queued', 'queued', [0, 7, 0, 0]],
    ['decided', 'granted', [0, 12, 0, 0]],
    ['decided', 'queue timeout', [0, 2, 0, 0]],
    ['refused', 'concurrency', [0, 1, 0, 0]],
    ['tokens', 'input', [0, 300, 0, 0]],
    ['tokens', 'output', [0, 40, 0, 0]],
    ['cost', 'cost', [0, 0.5, 0, 0]],
  ])('count none in %s, %s, where nothing happened', (id, label, expected) => {
    expect(values([POINT], id, label)).toEqual(expected);
  });

  it.each([
    ['p50', [null, 100, null, null]],
    ['p95', [null, 900, null, null]],
    ['p99', [null, 1_000, null, null]],
  ])('know no %s where nobody was granted', (label, expected) => {
    expect(values([POINT], 'waits', label)).toEqual(expected);
  });

  it('are blank before the group existed, and sums say since when they count', () => {
    const gap = {
      from: '2026-11-20T10:00:00.000Z',
      to: '2026-11-20T10:01:00.000Z',
      why: 'before' as const,
    };
    const { charts, gaps } = chartsOf(history([POINT], [gap]));
    for (const { lines } of charts) {
      for (const { values: all } of lines) expect(all[0]).toBeNull();
    }
    const decided = charts.find(({ id }) => id === 'decided');
    expect(decided?.lines[0]?.values).toEqual([null, 12, 0, 0]);
    expect(gaps[0]?.label).toMatch(/^no data before \d\d:\d\d/);
    expect(totalInWords(gaps)).toMatch(/^in total since \d\d:\d\d/);
    expect(decided && summaryOf(decided, gaps)).toMatch(/12 in total since .*No data before/);
    expect(totalInWords([])).toBe('in total');
  });

  it('have no sum where nothing is known', () => {
    const gap = { from: '2026-11-20T10:00:00.000Z', to: '2026-11-20T10:04:00.000Z' };
    const { charts } = chartsOf(history([], [{ ...gap, why: 'absent' }]));
    const cost = charts.find(({ id }) => id === 'cost');
    const [line] = cost?.lines ?? [];
    expect(cost && line && valueOf(cost, line, null)).toBeNull();
  });

  it('are blank where a point is of a time in which the group had no members', () => {
    const later = { ...POINT, at: '2026-11-20T10:02:00.000Z', granted_by_member: { a: 3 } };
    expect(values([POINT, later], 'member-granted', 'a')).toEqual([0, null, 3, 0]);
  });

  it('know nothing of a step that lies in a gap and has no point, and say where the gap is', () => {
    const gap = {
      from: '2026-11-20T10:01:30.000Z',
      to: '2026-11-20T10:02:40.000Z',
      why: 'lost' as const,
    };
    const { charts, gaps } = chartsOf(history([POINT], [gap]));
    const granted = charts.find(({ id }) => id === 'decided')?.lines[0]?.values;
    expect(granted).toEqual([0, 12, null, 0]);
    const [, , limit] = charts.find(({ id }) => id === 'slots')?.lines ?? [];
    expect(limit?.values).toEqual([null, 5, null, 5]);
    expect(gaps.map(({ from, to }) => to - from)).toEqual([70]);
    expect(gaps[0]).toMatchObject({ label: 'no data', words: expect.stringMatching(/restarted/) });
    expect(totalInWords(gaps)).toBe('in total excluding gaps');
  });

  it('tell what calls waited for, if there were any, and whose calls took longest', () => {
    expect(chartsOf(history([])).charts.map(({ id }) => id)).not.toContain('waited-for');
    const one = {
      ...POINT,
      waited_for: { slots: 3, operator_pause: 1 },
      tenants_waited: [
        { tenant: 'a', ms: 5_000 },
        { tenant: 'b', ms: 4_000 },
      ],
      tenants_held: [{ tenant: 'c', ms: 10 }],
    };
    const two = {
      ...one,
      at: '2026-11-20T10:02:00.000Z',
      tenants_waited: [{ tenant: 'b', ms: 2_000 }],
    };
    expect(chart([one], 'waited-for').lines.map(({ label, values: all }) => [label, all])).toEqual([
      ['paused by an operator', [0, 1, 0, 0]],
      ['all slots in use', [0, 3, 0, 0]],
    ]);
    expect(chartsOf(history([one, two])).tenants).toEqual({
      waited: [
        { tenant: 'b', ms: 6_000 },
        { tenant: 'a', ms: 5_000 },
      ],
      held: [{ tenant: 'c', ms: 20 }],
    });
  });

  it('keep a limit through steps that say nothing of it', () => {
    expect(values([POINT], 'slots', 'limit')).toEqual([null, 5, 5, 5]);
  });

  it('show a learned limit only where it is another than the configured one', () => {
    const later = { ...POINT, at: '2026-11-20T10:02:00.000Z', limit: 3 };
    expect(values([POINT], 'slots', 'learned')).toBeUndefined();
    expect(values([POINT, later], 'slots', 'learned')).toEqual([null, 5, 3, 3]);
  });

  it('have a line for each reason that occurs, in an order that a later answer does not change', () => {
    const other = { ...POINT, rejected: { draining: 1, queue_timeout: 1 } };
    expect(chart([other], 'decided').lines.map(({ label }) => label)).toEqual([
      'granted',
      'draining',
      'queue timeout',
    ]);
  });

  it('have charts of members only where the group names any', () => {
    const ids = (points: readonly DashboardHistoryChartsPoint[]) =>
      chartsOf(history(points)).charts.flatMap(({ id }) => (id.startsWith('member') ? [id] : []));
    const split = { ...POINT, granted_by_member: {}, refused_by_member: {} };
    expect(ids([POINT])).toEqual([]);
    expect(ids([split])).toEqual(['member-slots', 'member-granted', 'member-refused']);
  });

  it('draw a member alike in each of its charts, and leave out one that had nothing there', () => {
    const split = {
      ...POINT,
      in_use_max_by_member: { key_a: 2, key_b: 1 },
      granted_by_member: { key_a: 7, key_b: 5 },
      refused_by_member: { key_b: 1 },
    };
    expect(values([split], 'member-slots', 'key_a')).toEqual([0, 2, 0, 0]);
    expect(values([split], 'member-granted', 'key_b')).toEqual([0, 5, 0, 0]);
    const [refused] = chart([split], 'member-refused').lines;
    const [, granted] = chart([split], 'member-granted').lines;
    expect(refused).toMatchObject({ label: 'key_b', values: [0, 1, 0, 0] });
    expect([refused?.tone, refused?.dash]).toEqual([granted?.tone, granted?.dash]);
    expect(chart([split], 'member-refused').lines).toHaveLength(1);
  });

  it('tell a moment, and at rest the sum of counts and the latest of gauges', () => {
    const later = { ...POINT, at: '2026-11-20T10:02:00.000Z', granted: 3, wait_p50_ms: 50 };
    const decided = chart([POINT, later], 'decided');
    const waits = chart([POINT, later], 'waits');
    const [granted] = decided.lines;
    const [p50] = waits.lines;
    if (granted === undefined || p50 === undefined) throw new Error('There are no lines.');
    expect(valueOf(decided, granted, 1)).toBe(12);
    expect(valueOf(decided, granted, null)).toBe(15);
    expect(valueOf(waits, p50, 0)).toBeNull();
    expect(valueOf(waits, p50, null)).toBe(50);
  });

  it('say in a sentence what they show', () => {
    expect(summaryOf(chart([POINT], 'decided'))).toBe(
      'Grants and rejections, in calls per min. granted: 12 in total, at most 12; queue timeout: 2 in total, at most 2.',
    );
    expect(summaryOf(chart([], 'refused'))).toContain('None.');
    expect(summaryOf(chart([], 'waits'))).toContain('p50: no data');
  });
});

it.each([
  [null, 'breaker open'],
  ['night-shift', 'breaker open, by night-shift'],
])('a marker of %s says who it was', (actor, words) => {
  const at = POINT.at;
  const label = 'breaker open';
  expect(
    markerWords({ at, kind: 'breaker_opened', label, detail: '', actor, partition: null }),
  ).toBe(words);
});

describe('the ranges of charts', () => {
  it.each(HISTORY_RANGES)('make 200 steps at the most in $name', (range) => {
    const nowMs = Date.parse('2026-11-20T10:00:59.999Z');
    const steps = (nowMs - rangeStartMs(range, nowMs)) / range.stepMs;
    expect(steps).toBeLessThanOrEqual(200);
    expect(steps).toBeGreaterThanOrEqual(range.lengthMs / range.stepMs);
    expect(rangeStartMs(range, nowMs) % range.stepMs).toBe(0);
  });

  const now = Date.parse('2026-11-20T10:00:30.000Z');
  const at = (text: string): number => Date.parse(`2026-11-${text}:00Z`);

  it('are named in a link, and the shortest is taken where none is', () => {
    expect(rangeOf({ range: '7d' }, now).name).toBe('7 days');
    expect(rangeOf({ range: 'a year' }, now).id).toBe('15m');
    expect(rangeOf({}, now).id).toBe('15m');
    expect(rangeOf({ from: 'yesterday', to: '2026-11-20T10:00:00Z' }, now).id).toBe('15m');
    expect(rangeOf({ from: '2026-11-20T10:00:00Z', to: '2026-11-20T09:00:00Z' }, now).id).toBe(
      '15m',
    );
  });

  it.each([
    ['20T09:10', '20T09:30', 1],
    ['20T00:10', '20T09:30', 5],
    ['18T14:00', '18T14:20', 15],
    ['01T00:00', '20T09:30', 360],
  ])('of one’s own, from %s to %s, take steps of %i min', (from, to, minutes) => {
    const range = rangeOf(linkOf(at(from), at(to)), now);
    expect(range.stepMs).toBe(minutes * 60_000);
    expect(range.lengthMs / range.stepMs).toBeLessThanOrEqual(200);
    const startMs = rangeStartMs(range, now);
    expect(startMs).toBeLessThanOrEqual(at(from));
    expect(range.endMs).toBeGreaterThanOrEqual(at(to));
    expect(startMs % range.stepMs).toBe(0);
  });

  it('become wider around the same middle, and end now at the latest', () => {
    const range = ownRange(at('20T06:00'), at('20T07:00'), now);
    const wider = widerThan(range, now);
    expect([rangeStartMs(wider, now), wider.endMs]).toEqual([at('20T05:30'), at('20T07:30')]);
    const live = widerThan(rangeOf({ range: '24h' }, now), now);
    expect(live.endMs).toBeLessThan(now + 30 * 60_000);
  });

  it('are asked for anew when the minute is over', () => {
    expect(untilNextMinuteMs(Date.parse('2026-11-20T10:00:45.000Z'))).toBe(15_000);
  });
});
