// What is told of a pool after a reset: slots that nobody has claimed yet are a figure of their own.
import { beforeEach, describe, expect, it } from 'vitest';
import { NEVER } from '../../../src/core/state.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { after } from '../../../src/core/words/ids.ts';
import { definitionFrom, type Definition } from '../../../src/group/definition.ts';
import { History } from '../../../src/group/observe/history.ts';
import type { HistoryRows } from '../../../src/group/observe/history-rows.ts';
import { poolPreview } from '../../../src/group/observe/preview.ts';
import { poolStatus } from '../../../src/group/observe/status.ts';
import { Warnings } from '../../../src/group/observe/warnings.ts';
import type { GroupStore } from '../../../src/group/store.ts';
import { TestGroup } from '../../support/core-builders.ts';

const CONFIG = JSON.stringify({ name: 'g', limits: { max_concurrency: 4 } });
const DEFINITION: Definition = definitionFrom(
  { version: 1, routingVersion: 1, config: CONFIG },
  null,
);

let group: TestGroup;

beforeEach(() => {
  const before = TestGroup.stored({ slotsMax: 4 });
  before.askAll('a', 'b', 'c', 'd');
  before.write();
  group = before.reset();
});

function status() {
  const seen = { wait_p50_ms: null, wait_p95_ms: null, passedUnlimited: 0, idleMs: 0 };
  return poolStatus({ group: 'g', partition: null }, DEFINITION, group.state, seen, group.now);
}

describe('the status', () => {
  it('tells how many there are, and until when', () => {
    const until = new Date(after(group.now, LEASE_TTL_MS)).toISOString();
    expect(status()).toMatchObject({ in_use: 0, cooling: 0, unclaimed: 4, unclaimed_until: until });
  });

  it('counts one that was claimed as in use', () => {
    group.resume('a');
    expect(status()).toMatchObject({ in_use: 1, unclaimed: 3 });
  });

  it('tells no end where there are none', () => {
    group.advance(LEASE_TTL_MS);
    expect(status()).toMatchObject({ in_use: 0, unclaimed: 0, unclaimed_until: null });
  });
});

it('a preview counts calls in flight without them, and grants none of them away', () => {
  group.advance(1_000);
  group.ask('waiter');
  group.resume('a');
  const preview = poolPreview(group.state, CONFIG, CONFIG, group.now);
  expect(preview).toMatchObject({ in_use: 1, queued: 1, granted: 0 });
  const wider = JSON.stringify({ name: 'g', limits: { max_concurrency: 5 } });
  expect(poolPreview(group.state, CONFIG, wider, group.now)).toMatchObject({ granted: 1 });
});

it('history counts calls without them', () => {
  const rows = { minute: () => null, recent: () => [], read: () => [] };
  const history = new History(rows as unknown as HistoryRows, group.now);
  group.resume('a');
  history.note(group.state, group.now);
  group.advance(60_000);
  expect(history.turn(group.state, group.now)?.inUseMax).toBe(1);
});

it('a pool is not near its limit by them', () => {
  const told: string[] = [];
  const store = { recall: () => null, remember: () => {} } as unknown as GroupStore;
  const warnings = new Warnings(store, { group: 'g', partition: null }, (one) =>
    told.push(one.kind),
  );
  const bounds = { warn_at: 0.8, warn_wait_ms: null, timeoutMs: 60_000 };
  group.state.unclaimed.until = NEVER;
  for (let second = 0; second < 70; second += 10) {
    warnings.note(group.state, bounds, after(group.now, second * 1_000));
  }
  expect(told).toEqual([]);
});
