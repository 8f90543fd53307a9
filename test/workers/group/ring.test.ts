// The ring in which the bound is kept, row by row: how many places it has, and how long they last.
import { expect, it } from 'vitest';
import { emptyControls } from '../../../src/core/member.ts';
import { emptyBound, issue, type BoundRow } from '../../../src/core/parts/bound.ts';
import { IMPLICIT, instant, leaseId, type LeaseId } from '../../../src/core/words/ids.ts';
import { CostRows, BoundStore } from '../../../src/group/bound-store.ts';
import { GroupStore, Tables } from '../../../src/group/store.ts';
import { inside } from '../support/pool.ts';

const START = 1_000_000_000;
const PLACES = 302;
const PLACE_MS = 100;

/** A store over the database of an object that nobody else uses. */
class GroupRing {
  readonly #sql: SqlStorage;
  readonly #bound = emptyBound(1, true);
  #store: BoundStore;

  constructor(sql: SqlStorage, bootId = '') {
    this.#sql = sql;
    this.#store = this.#open(bootId);
  }

  /** Writes that a lease has ended, so many milliseconds after the start. */
  write(ms: number, ended: string): void {
    this.#bound.ended.push(leaseId(ended));
    const row = {
      mark: 5,
      held: 3,
      next: 100,
      waiters: 20,
      revoking: [],
      heirs: { ids: [], unlisted: 0 },
      parts: new Map(),
      memberOf: () => IMPLICIT,
    };
    const bound = issue(this.#bound, row, false, instant(START + ms));
    this.#store.write({ bound, isInRing: true, kept: null, upstreams: null }, null);
  }

  /** Writes the same with the controls. */
  keep(ms: number, ended: string): void {
    this.#bound.ended.push(leaseId(ended));
    const row = {
      mark: 5,
      held: 3,
      next: 100,
      waiters: 20,
      revoking: [],
      heirs: { ids: [], unlisted: 0 },
      parts: new Map(),
      memberOf: () => IMPLICIT,
    };
    const bound = issue(this.#bound, row, true, instant(START + ms));
    const kept = { controls: emptyControls(instant(START)), ahead: {}, closedDays: [] };
    this.#store.write({ bound, isInRing: false, kept, upstreams: null }, null);
  }

  /** Reads what has ended by the row of the controls alone, as the next instance does. */
  untold(): readonly LeaseId[] {
    this.#store = this.#open('');
    return this.#store.load(instant(START)).untold;
  }

  /** Reads it as the next instance does. */
  reload(bootId = ''): BoundRow | null {
    this.#store = this.#open(bootId);
    return this.#store.load(instant(START)).bound;
  }

  count(): number {
    return this.#sql.exec<{ n: number }>('SELECT COUNT(*) AS n FROM bound').one().n;
  }

  #open(bootId: string): BoundStore {
    const tables = new Tables(this.#sql, true);
    return new BoundStore(tables, new GroupStore(tables), new CostRows(tables), bootId);
  }
}

function onRing<Result>(name: string, work: (ring: GroupRing) => Result): Promise<Result> {
  return inside(name, (_instance, { storage }) => work(new GroupRing(storage.sql)));
}

it('has 302 places, each of which lasts 100 ms, so that it covers 30 s', async () => {
  const writes = 3 * PLACES;
  const found = await onRing('ring', (ring) => {
    for (let at = 0; at < writes; at += 1) ring.write(at * PLACE_MS, `t${at}.1`);
    return { places: ring.count(), last: ring.reload() };
  });
  expect(found.places).toBe(PLACES);
  expect(found.last).toMatchObject({ seq: writes, mark: 5, held: 3 });
  const kept = new Set(found.last?.ended);
  for (let at = writes - 1; (writes - 1 - at) * PLACE_MS <= 30_000; at -= 1) {
    expect(kept).toContain(`t${at}.1`);
  }
});

it('writes within 100 ms share a place, and nothing that ended by one of them is lost', async () => {
  const found = await onRing('shared', (ring) => {
    for (let ms = 0; ms < 1_000; ms += 1) ring.write(ms, `t${ms}.1`);
    return { places: ring.count(), ended: ring.reload()?.ended };
  });
  expect(found.places).toBe(10);
  expect(new Set(found.ended).size).toBe(1_000);
});

it('goes on behind the last place after a reset, and after a clock that was set back', async () => {
  const found = await onRing('goes-on', (ring) => {
    ring.write(10_000, 'a.1');
    ring.reload();
    ring.write(10_001, 'b.1');
    ring.write(5_000, 'c.1');
    ring.write(5_001, 'd.1');
    return { places: ring.count(), last: ring.reload() };
  });
  expect(found.places).toBe(3);
  expect(found.last).toMatchObject({ seq: 4, at: START + 5_001 });
  expect(found.last?.ended.toSorted()).toEqual(['a.1', 'b.1', 'c.1', 'd.1']);
});

it('says what has ended by the row of the controls alone, which is written over', async () => {
  const found = await onRing('untold', (ring) => {
    ring.write(0, 'a.1');
    const none = ring.untold();
    ring.keep(1_000, 'b.1');
    const kept = { untold: ring.untold(), ended: ring.reload()?.ended };
    ring.write(2_000, 'c.1');
    return { none, kept, last: ring.untold(), ended: ring.reload()?.ended };
  });
  expect(found.none).toEqual([]);
  expect(found.kept).toEqual({ untold: ['b.1'], ended: ['a.1', 'b.1'] });
  expect(found.last, 'the ring has told it meanwhile').toEqual([]);
  expect(new Set(found.ended)).toEqual(new Set(['a.1', 'b.1', 'c.1']));
});

it('of another process nothing is held any more, and nobody waits', async () => {
  const found = await onRing('boot', (ring) => {
    ring.write(0, 'a.1');
    return [ring.reload(), ring.reload('another')];
  });
  expect(found).toMatchObject([
    { mark: 5, waiters: 32 },
    { mark: 0, waiters: 0 },
  ]);
});
