/** The rows of a history: whoever starts cold reads few of them, since each is paid for. */
import { describe, expect, it } from 'vitest';
import { MINUTE_MS, QUARTER_MS, type HistoryPoint } from '../../../src/contract/history.ts';
import { emptyCounts } from '../../../src/core/parts/totals.ts';
import { HistoryRows } from '../../../src/group/observe/rows.ts';
import { Tables } from '../../../src/group/store.ts';
import { inside } from '../support/pool.ts';

const DAY_MS = 86_400_000;
/** Fri, 20 Nov 2026 00:00 UTC: a day that begins in the middle of both rings. */
const NOW = Date.UTC(2026, 10, 20, 12);

function point(at: number): HistoryPoint {
  return {
    at,
    inUseMax: 1,
    slotMs: 0,
    limit: 1,
    limitConfigured: 1,
    queuedMax: 0,
    waits: emptyCounts(),
    granted: 1,
    rejected: {},
    refusals: {},
    inputTokens: 0,
    outputTokens: 0,
    usd: 0,
    ended: {},
    waitedFor: {},
    waitedForMs: {},
    tenantsWaited: [],
    tenantsHeld: [],
  };
}

interface HistoryRowsCounting {
  readonly sql: SqlStorage;
  /** Rows read since it was asked before. */
  readonly read: () => number;
}

/** The storage of an object, which counts what is read of it. */
function counting(sql: SqlStorage): HistoryRowsCounting {
  const cursors: { rowsRead: number }[] = [];
  const exec: SqlStorage['exec'] = (query, ...bindings) => {
    const cursor = sql.exec(query, ...bindings);
    cursors.push(cursor);
    return cursor as never;
  };
  return {
    sql: { exec } as SqlStorage,
    read: () => cursors.splice(0).reduce((rows, { rowsRead }) => rows + rowsRead, 0),
  };
}

function inStorage<T>(name: string, use: (storage: HistoryRowsCounting) => T): Promise<T> {
  return inside(name, (_instance, { storage }) => use(counting(storage.sql)));
}

describe('an instance that starts cold', () => {
  it('reads a few rows of 30 days of history, at every quarter of the hour', async () => {
    const worst = await inStorage('cold-history', ({ sql, read }) => {
      const first = new HistoryRows(new Tables(sql, true));
      for (let at = NOW - 31 * DAY_MS; at < NOW; at += 5 * MINUTE_MS) first.write(point(at));
      let most = 0;
      for (let at = NOW; at < NOW + DAY_MS; at += QUARTER_MS) {
        read();
        const rows = new HistoryRows(new Tables(sql, true));
        rows.minute(at);
        rows.write(point(at));
        most = Math.max(most, read());
      }
      return most;
    });
    expect(worst).toBeGreaterThan(0);
    expect(worst).toBeLessThan(40);
  });

  it('closes the quarters of a whole day at once, and forgets none', async () => {
    const quarters = await inStorage('cold-day', ({ sql }) => {
      const early = new HistoryRows(new Tables(sql, true));
      // The quarters before the last day were closed; then minutes came, but no quarter was over.
      sql.exec('DELETE FROM history');
      for (let at = NOW - DAY_MS + MINUTE_MS; at < NOW; at += MINUTE_MS) {
        early.write(point(at));
        sql.exec('DELETE FROM history WHERE slot >= 1440');
      }
      new HistoryRows(new Tables(sql, true)).write(point(NOW));
      return early.read(NOW - 2 * DAY_MS, NOW, QUARTER_MS, NOW);
    });
    expect(quarters.reduce((sum, { granted }) => sum + granted, 0)).toBe(1_439);
    expect(quarters).toHaveLength(96);
  });

  it('does not take rows of a month ago for those of today', async () => {
    const points = await inStorage('stale-history', ({ sql }) => {
      const early = new HistoryRows(new Tables(sql, true));
      for (let at = NOW - 30 * DAY_MS; at < NOW - 29 * DAY_MS; at += MINUTE_MS) {
        early.write(point(at));
      }
      const rows = new HistoryRows(new Tables(sql, true));
      rows.write(point(NOW));
      expect(rows.minute(NOW + MINUTE_MS)).toBe(null);
      return rows.read(NOW - DAY_MS, NOW + MINUTE_MS, MINUTE_MS, NOW);
    });
    expect(points.map(({ at }) => at)).toEqual([NOW]);
  });
});
