import { afterAll, describe, expect, test } from 'vitest';
import { instant, leaseIdOf, type LeaseId } from '../../../src/core/words/ids.ts';
import { emptyState } from '../../../src/core/recover.ts';
import { nextWakeAt, step } from '../../../src/core/step.ts';
import { someSettings, someTicket, START, UNMETERED } from '../../support/core-builders.ts';
import { SlidingLog } from '../controls/sliding-log.ts';
import { SimulatorRandom } from '../simulator/random.ts';
import { percent, printTable } from '../simulator/table.ts';

/** A queue that is always full of calls that are large for the limit of tokens. */

const TPM = 10_000;
const QUEUED = 20;
const LENGTH_MS = 2 * 3_600_000;

type SizeOf = (random: SimulatorRandom) => number;

const upTo =
  (most: number): SizeOf =>
  (random) =>
    1 + random.below(most);

interface LargeCallsRun {
  readonly granted: SlidingLog;
  /** How long the calls of the size that is looked at waited. */
  readonly waits: readonly number[];
}

/** Lets the queue run for hours. Each call is held for a while, and uses what was estimated. */
function runQueue(sizeOf: SizeOf, lookedAt: number): LargeCallsRun {
  const random = new SimulatorRandom(11);
  const state = emptyState(
    someSettings({
      slotsMax: 100,
      isMetered: true,
      timeoutMs: LENGTH_MS,
      rates: { ...UNMETERED.rates, tpm: TPM },
    }),
    1,
  );
  const granted = new SlidingLog(60_000);
  const waits: number[] = [];
  const ends: { readonly at: number; readonly leaseId: LeaseId }[] = [];
  let now: number = START;
  let asked = 0;
  const run = (event: Parameters<typeof step>[1]): void => {
    for (const effect of step(state, event, instant(now))) {
      if (effect.kind !== 'grant') continue;
      const { id, reserved, ticketId } = effect.lease;
      const size = reserved?.demand.inputTokens ?? NaN;
      granted.add(now, size);
      const askedAt = Number(ticketId.split('-')[1]);
      if (size === lookedAt) waits.push(now - askedAt);
      ends.push({ at: now + 500 + random.below(20_000), leaseId: id });
      ends.sort((a, b) => a.at - b.at);
    }
  };
  while (now < START + LENGTH_MS) {
    while (state.queue.byTicket.size < QUEUED) {
      const estimate = {
        inputTokens: sizeOf(random),
        maxOutputTokens: null,
        reserve: 'none' as const,
        price: null,
      };
      const ticket = someTicket(`call-${now}-${asked++}`, instant(now), { estimate });
      run({ kind: 'acquire', ticket, leaseId: leaseIdOf(ticket.id, 1), sliceMs: LENGTH_MS });
    }
    now = Math.max(now, Math.min(nextWakeAt(state, instant(now)), ends[0]?.at ?? Infinity));
    const due = (ends[0]?.at ?? Infinity) <= now ? ends.shift() : undefined;
    if (due === undefined) run({ kind: 'tick' });
    else run({ kind: 'release', leaseId: due.leaseId, outcome: 'success', settlement: null });
  }
  return { granted, waits };
}

describe('a full queue under a limit of tokens', () => {
  const rows: string[][] = [];

  afterAll(() => {
    printTable('Large calls under a TPM of 10,000', ['sizes', 'used', 'most in a minute'], rows);
  });

  /** Sizes up to a fifth of the limit. */
  test.each<[string, SizeOf, number]>([
    ['up to 500', upTo(500), 0.95],
    ['up to 1,000', upTo(1_000), 0.95],
    ['up to 2,000', upTo(2_000), 0.95],
    ['of 300 and of 2,000', (random) => (random.next() < 0.5 ? 300 : 2_000), 0.95],
    ['of 1,000', () => 1_000, 0.95],
    ['of 2,000', () => 2_000, 0.95],
    // No more than five whole ones fit into a minute.
    ['of 1,900', () => 1_900, 0.95 * 0.95],
    ['of 1,700', () => 1_700, 0.95 * 0.85],
    // Beyond a fifth less can be used, and nothing more may pass.
    ['of 4,000', () => 4_000, 0.95 * 0.8],
    ['up to 8,000', upTo(8_000), 0.8],
  ])('of calls %s uses 95 % of what fits, and no minute has more', (name, sizeOf, least) => {
    const { granted } = runQueue(sizeOf, 0);
    const used = granted.total / ((TPM * LENGTH_MS) / 60_000);
    rows.push([name, percent(used), String(granted.most())]);
    expect(used).toBeGreaterThanOrEqual(least);
    expect(granted.most()).toBeLessThanOrEqual(TPM);
  });

  test('starves no call that is large among small ones', () => {
    const sizeOf: SizeOf = (random) => (random.next() < 0.99 ? 250 : 9_000);
    const { granted, waits } = runQueue(sizeOf, 9_000);
    expect(waits.length).toBeGreaterThan(10);
    // 19 before it, one of which may be as large; then at most a minute, when all that was taken has left.
    expect(Math.max(...waits)).toBeLessThan(4 * 60_000);
    expect(granted.most()).toBeLessThanOrEqual(TPM);
  });
});
