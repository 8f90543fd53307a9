import { describe, expect, test } from 'vitest';
import { atUpstream } from '../../../src/core/capacity.ts';
import { notePace, type Prefetch, type KeeperReport } from '../../../src/core/parts/prefetches.ts';
import {
  PREFETCHED_PACE_MIN,
  PREFETCH_RENEW_EVERY_MS,
  PREFETCH_TTL_MS,
  type GroupSettings,
} from '../../../src/core/words/settings.ts';
import { instant, leaseId, leaseIdOf, ticketId } from '../../../src/core/words/ids.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** Slots that are lent to isolates: when they are wanted back, and what is made of what keepers tell. */

const ISOLATE = 'isolate';

/** A group that has written, and what it has lent to an isolate that calls often. */
function prefetching(settings: Partial<GroupSettings> = {}): { group: TestGroup; loan: Prefetch } {
  const group = TestGroup.stored({ slotsMax: 40, isAdaptive: false, ...settings });
  for (let calls = 0; calls < 2 * PREFETCHED_PACE_MIN; calls += 1) call(group, `often-${calls}`);
  return { group, loan: prefetchOf(group) };
}

/** Lets a call of the isolate be granted, and end at once. */
function call(group: TestGroup, name: string): void {
  group.ask(name, { isolate: ISOLATE });
  group.write();
  group.release(name);
}

function prefetchOf({ state }: TestGroup): Prefetch {
  const prefetch = state.lending.growing.get(ISOLATE);
  if (prefetch === undefined) throw new Error('nothing is lent');
  return prefetch;
}

function keep(
  group: TestGroup,
  { id, slots }: Prefetch,
  changes: Partial<KeeperReport> = {},
): string[] {
  const reported = { known: slots.size, used: 0, peak: 0, ended: [], ...changes };
  return group.send({ kind: 'keep_loan', loanId: id, isNew: false, told: reported });
}

describe('slots that their isolate does not know', () => {
  test('are wanted back with all others, once they are not on their way any more', () => {
    const { group, loan: prefetch } = prefetching();
    for (let ms = 0; ms < PREFETCH_TTL_MS; ms += PREFETCH_RENEW_EVERY_MS) {
      keep(group, prefetch, { known: prefetch.slots.size - 1 });
      expect(prefetch.isRecalled).toBe(false);
      group.advance(PREFETCH_RENEW_EVERY_MS);
    }
    keep(group, prefetch, { known: prefetch.slots.size - 1 });
    expect(prefetch.isRecalled).toBe(true);
    expect(group.state.lending.growing.size).toBe(0);
  });

  test('are none while it hears of them in time, again and again', () => {
    const { group, loan } = prefetching();
    for (let ms = 0; ms < 4 * PREFETCH_TTL_MS; ms += PREFETCH_RENEW_EVERY_MS) {
      const isLate = (ms / PREFETCH_RENEW_EVERY_MS) % 4 > 0;
      keep(group, loan, { known: loan.slots.size - (isLate ? 1 : 0) });
      group.advance(PREFETCH_RENEW_EVERY_MS);
    }
    expect(loan.isRecalled).toBe(false);
  });
});

test('they are wanted back while some are free, for calls that would be refused rather than wait', () => {
  const { group, loan } = prefetching({ slotsMax: 16 });
  const others = 12 - loan.slots.size;
  for (let held = 0; held < others; held += 1) group.ask(`held-${held}`, { wait: false });
  expect(group.state.slotsInUse).toBe(12);
  expect(loan.isRecalled).toBe(false);
  expect(group.ask('next', { wait: false })).toEqual(['grant next.1', `recalled ${loan.id}`]);
});

test('an heir brings none: its answer leaves before anything is written', () => {
  const group = TestGroup.stored({ slotsMax: 16, isAdaptive: false });
  const names = Array.from({ length: 16 }, (_, index) => `h${index}`);
  group.askAll(...names);
  for (let calls = 0; calls < PREFETCHED_PACE_MIN; calls += 1) {
    notePace(group.state.lending, ISOLATE, group.now);
  }
  group.ask('waits', { isolate: ISOLATE });
  group.write();
  group.write();
  group.reconfigure({ paused: true });
  const end = { outcome: 'success', settlement: null, isSole: true } as const;
  for (const name of names) {
    group.send({ kind: 'release', leaseId: leaseIdOf(ticketId(name), 1), ...end });
  }
  group.reconfigure({ paused: false });
  expect(group.lease('waits').heirOf).not.toEqual([]);
  expect(group.state.lending.slots).toBe(0);
  // The next one asks like any other, and brings some.
  call(group, 'often');
  expect(prefetchOf(group).slots.size).toBeGreaterThan(0);
});

describe('calls that are told of', () => {
  const holder = { caller: 'caller', tenant: 'tenant', agent: null, upstream: 'up', model: null };

  function endedOf(
    last: readonly (readonly [beganMs: number, endedMs: number])[],
    status = 200,
  ): KeeperReport['ended'] {
    const each = last.map((one, index) => [leaseId(`told-${index}.1`), ...one] as const);
    const sums = { calls: last.length, heldMs: 100 * last.length, last: each };
    return [{ holder, lane: 'normal', status, ...sums }];
  }

  function some(beganMs: number): KeeperReport['ended'] {
    return endedOf(Array.from({ length: 20 }, () => [beganMs, beganMs - 10] as const));
  }

  test('do not contradict a refusal that came after they began', () => {
    const { group, loan } = prefetching({ isAdaptive: true });
    group.askAll('beside', 'refused');
    group.advance(50);
    group.report('refused', { kind: 'concurrency' });
    const { evidence } = group.state.controls.ceiling;
    const { refusal } = evidence;
    expect(refusal).not.toBeNull();
    group.advance(20);
    keep(group, loan, { peak: 4, ended: some(500) });
    expect(evidence.refusal).toEqual({ ...refusal, servedSlots: 0 });
    keep(group, loan, { peak: 4, ended: some(10) });
    expect(evidence.refusal).toBeNull();
  });

  test('count by the error status of their answer, as calls that asked do', () => {
    const { group, loan } = prefetching();
    const ended = (status: number, calls: number) =>
      endedOf(
        Array.from({ length: calls }, () => [20, 10] as const),
        status,
      );
    keep(group, loan, { ended: [...ended(200, 4), ...ended(401, 3), ...ended(451, 2)] });
    for (const [name, status] of [
      ['served', 200],
      ['declined', 401],
      ['unknown', null],
    ] as const) {
      group.ask(name);
      const lease = { leaseId: leaseIdOf(ticketId(name), 1), settlement: null };
      group.send({ kind: 'release', outcome: 'success', status, ...lease });
    }
    expect(group.state.totals.answeredErrors).toEqual({ '401': 4, '4xx': 2 });
  });

  test('were beside no more others than at both ends of what is told', () => {
    const { group, loan } = prefetching({ isAdaptive: true });
    keep(group, loan, { used: 1 });
    const { evidence } = group.state.controls.ceiling;
    for (let others = 0; others < 6; others += 1) group.ask(`other-${others}`);
    expect(atUpstream(group.state, group.member())).toBe(7);
    group.now = instant(group.now + 500);
    keep(group, loan, { used: 1, peak: 3, ended: some(100) });
    expect(evidence.servedSlots).toBeLessThanOrEqual(3);
    keep(group, loan, { used: 1, peak: 3, ended: some(100) });
    expect(evidence.servedSlots).toBe(9);
  });
});
