// The columns of the tables of gauges: each derives what the rows leave to it.
import { describe, expect, it } from 'vitest';
import {
  GAUGES,
  MEMBER_GAUGES,
  METRICS_ONLY,
  type GaugeRow,
} from '../../../src/contract/gauges.ts';
import type { PoolMetrics } from '../../../src/contract/rpc/feed-rpc.ts';
import { emptyRates } from '../../../src/core/parts/rates.ts';
import { emptyTotals } from '../../../src/core/parts/totals.ts';
import { instant } from '../../../src/core/words/ids.ts';
import { counterReader } from '../../../src/group/observe/limit-status.ts';
import { groupStatus } from '../../../src/overview/group-status.ts';
import { joinRows } from '../../../src/overview/joins.ts';
import { resting, untouched } from '../../../src/overview/unused-group.ts';
import { aConfig } from '../routing/fixtures.ts';

type AnyRow = Omit<GaugeRow<string, string>, 'description'>;

const ROWS: readonly (readonly [string, AnyRow])[] = [GAUGES, MEMBER_GAUGES, METRICS_ONLY].flatMap(
  (rows) => Object.entries<AnyRow>(rows),
);

const NOW = instant(Date.parse('2026-03-14T12:30:00Z'));
const CONFIG = aConfig({ groups: [{ name: 'g' }] });

function unused(): PoolMetrics {
  const [group] = CONFIG.groups;
  if (group === undefined) throw new Error('no group');
  return untouched(group, NOW);
}

describe('a row', () => {
  it.each(ROWS)('%s has a label exactly if its metric has a series for each name', (_, row) => {
    const isByName = row.shape === 'tally' || row.shape === 'lanes';
    expect(row.label !== undefined).toBe(isByName && row.metric !== undefined);
  });

  it.each(ROWS.filter(([, { metric }]) => metric !== undefined))(
    '%s has a metric of its type and unit',
    (name, { shape, metric }) => {
      expect(metric?.type).toBe(name.endsWith('_total') ? 'counter' : 'gauge');
      expect(metric?.name.endsWith('_seconds')).toBe(shape === 'ms');
    },
  );

  it.each(ROWS.filter(([, { idle, unused: value }]) => idle === 'unused' && value === undefined))(
    '%s is absent while its pool is idle, so it is optional',
    (_, { optional }) => {
      expect(optional).toBe(true);
    },
  );
});

describe('several pools', () => {
  const rows = {
    sum: { shape: 'count', join: 'sum', unused: 0 },
    tally: { shape: 'tally', join: 'tally', unused: {} },
    max: { shape: 'ms', join: 'max', unused: null },
    min: { shape: 'ms', join: 'min', unused: 0 },
    earliest: { shape: 'instant', join: 'earliest' },
    latest: { shape: 'instant', join: 'latest', unused: null },
    first: { shape: 'word', join: 'first', unused: null },
    worst: { shape: 'breaker', join: 'worst', unused: 'closed' },
    rule: { shape: 'limit' },
  } as const;
  const [early, late] = ['2026-03-14T12:00:00.000Z', '2026-03-14T13:00:00.000Z'];
  const a = {
    sum: 1,
    tally: { x: 1, y: 2 },
    max: null,
    min: 9,
    earliest: late,
    latest: early,
    first: null,
    worst: 'half_open',
    rule: 1,
  };
  const b = {
    sum: 2,
    tally: { y: 3 },
    max: 5,
    min: 4,
    earliest: early,
    latest: late,
    first: 'rpm',
    worst: 'closed',
    rule: 2,
  };

  it('are joined by the column of each row', () => {
    expect(joinRows(rows, [a, b])).toEqual({
      sum: 3,
      tally: { x: 1, y: 5 },
      max: 5,
      min: 4,
      earliest: early,
      latest: late,
      first: 'rpm',
      worst: 'half_open',
    });
  });

  it('keep the values of one pool, and null where no pool has a value', () => {
    const { rule: _rule, ...joined } = a;
    expect(joinRows(rows, [a])).toEqual(joined);
    expect(joinRows(rows, [a, a])).toMatchObject({ max: null, first: null });
  });

  it('have the values of an unused group if there are none', () => {
    expect(joinRows(rows, [])).toEqual({
      sum: 0,
      tally: {},
      max: null,
      min: 0,
      latest: null,
      first: null,
      worst: 'closed',
    });
  });

  it('leave out an optional value that none of them has', () => {
    const optional = { until: { shape: 'instant', join: 'latest', optional: true } } as const;
    expect(joinRows(optional, [{}, {}])).toEqual({});
    expect(joinRows(optional, [{}, { until: early }])).toEqual({ until: early });
  });

  it('show no stall without a pool, because it is unknown whether calls end', () => {
    expect(groupStatus('g', CONFIG, [], [])).not.toHaveProperty('stalled_ms');
    const { status } = unused();
    const replies = [1, 2].map((n) => ({
      pool: { group: 'g', partition: null },
      answer: { ...status, stalled_ms: n === 1 ? null : 3_000 },
    }));
    expect(groupStatus('g', CONFIG, replies, [])?.stalled_ms).toBe(3_000);
  });
});

it('an idle pool keeps its counters and holds no slots of any kind', () => {
  const metrics = {
    ...unused(),
    moved_total: 3,
    ended_total: { success: 2 },
    slots_by_kind: { lease: 1 },
    queued_by_scope: { model: 1 },
  };
  const pool = { group: 'g', partition: null };
  const shown = resting(pool, { at: NOW, metrics, rates: emptyRates() }, CONFIG, NOW);
  expect(shown).toMatchObject({ moved_total: 3, ended_total: { success: 2 } });
  expect(shown).not.toHaveProperty('slots_by_kind');
  expect(shown).not.toHaveProperty('queued_by_scope');
});

it('counters are read from the totals as they are now', () => {
  const totals = emptyTotals();
  const read = counterReader(GAUGES);
  totals.wouldWait = 2;
  totals.rejected = { busy: 1 };
  const counters = read(totals);
  totals.rejected.busy = 9;
  expect(counters).toMatchObject({ would_wait_total: 2, rejected_total: { busy: 1 } });
});
