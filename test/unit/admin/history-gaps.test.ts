import { describe, expect, it } from 'vitest';
import { gapsIn, type PoolLifetime } from '../../../src/admin/history-events.ts';
import type { Marker } from '../../../src/admin/history-events.ts';
import type { HistoryPoint, PoolHistory } from '../../../src/contract/history.ts';
import type { PoolReply } from '../../../src/overview/pools.ts';

const MINUTE_MS = 60_000;
const RANGE = { fromMs: 10 * MINUTE_MS, toMs: 20 * MINUTE_MS };
const CONFIGURED: PoolLifetime = { isByCalls: false, isConfigured: true };
const BY_CALLS: PoolLifetime = { isByCalls: true, isConfigured: false };

/** The answer of a pool that has data since a minute (null: none), and points in some. */
function said(
  since: number | null,
  points: readonly number[] = [],
  more: Partial<PoolHistory> = {},
): PoolReply<PoolHistory> {
  const at = (minute: number): number => minute * MINUTE_MS;
  return {
    pool: { group: 'g', partition: null },
    answer: {
      now: RANGE.toMs,
      points: points.map((minute) => ({ at: at(minute) }) as HistoryPoint),
      since: since === null ? null : at(since),
      markers: [],
      gaps: [],
      ...more,
    },
  };
}

function marked(kind: 'created' | 'removed', minute: number): Marker {
  const at = iso(minute);
  return { at, kind, label: kind, detail: kind, actor: 'ann', partition: null };
}

function iso(minute: number): string {
  return new Date(minute * MINUTE_MS).toISOString();
}

/** The gaps in minutes, and since when there is data. */
function gaps(
  asked: readonly PoolReply<PoolHistory>[],
  markers: readonly Marker[],
  existence: PoolLifetime,
) {
  const { since, gaps: all } = gapsIn(RANGE, asked, markers, existence);
  const minute = (at: string): number => Date.parse(at) / MINUTE_MS;
  return {
    since: since === null ? null : minute(since),
    gaps: all.map(({ from, to, why }) => [why, minute(from), minute(to)]),
  };
}

describe('a configured group', () => {
  it('that was there before has no gap, called or not', () => {
    expect(gaps([said(2)], [], CONFIGURED)).toEqual({ since: 10, gaps: [] });
    expect(gaps([said(null)], [], CONFIGURED)).toEqual({ since: 10, gaps: [] });
    expect(gaps([], [], CONFIGURED)).toEqual({ since: 10, gaps: [] });
  });

  it('is not there before it was made, though its first call comes later', () => {
    const made = [marked('created', 13)];
    expect(gaps([said(15, [15])], made, CONFIGURED)).toEqual({
      since: 13,
      gaps: [['before', 10, 13]],
    });
  });

  it('was there if a pool has recorded something, whatever the audit log says', () => {
    expect(gaps([said(12, [12])], [marked('created', 13)], CONFIGURED)).toEqual({
      since: 12,
      gaps: [['before', 10, 12]],
    });
  });

  it('is absent between its end and its next begin', () => {
    const markers = [marked('removed', 12), marked('created', 17)];
    expect(gaps([said(1, [11])], markers, CONFIGURED)).toEqual({
      since: 10,
      gaps: [['absent', 12, 17]],
    });
    const removed = { isByCalls: false, isConfigured: false };
    expect(gaps([said(1, [11])], [marked('removed', 12)], removed).gaps).toEqual([
      ['absent', 12, 20],
    ]);
  });
});

describe('a group that its calls make', () => {
  it('begins with the first of them', () => {
    expect(gaps([said(14, [14]), said(16, [16])], [], BY_CALLS)).toEqual({
      since: 14,
      gaps: [['before', 10, 14]],
    });
    expect(gaps([said(3)], [], BY_CALLS)).toEqual({ since: 10, gaps: [] });
    expect(gaps([said(null)], [], BY_CALLS)).toEqual({ since: null, gaps: [['absent', 10, 20]] });
  });
});

it('what restarts have lost is a gap besides, and a group without an answer is one', () => {
  const lost = { gaps: [{ from: 11 * MINUTE_MS, to: 12 * MINUTE_MS }] };
  expect(gaps([said(1, [], lost)], [], CONFIGURED).gaps).toEqual([['lost', 11, 12]]);
  const silent = { pool: { group: 'g', partition: null }, error: 'out of reach' };
  expect(gaps([silent], [], CONFIGURED)).toEqual({
    since: null,
    gaps: [['unreachable', 10, 20]],
  });
});
