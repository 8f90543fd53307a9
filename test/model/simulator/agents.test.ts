import { afterAll, describe, expect, test } from 'vitest';
import { instant } from '../../../src/core/words/ids.ts';
import { SOMEBODY, someTicket, START } from '../../support/core-builders.ts';
import { isPartial } from '../runs.ts';
import { SimulatorCaller } from './caller.ts';
import { Clock } from './clock.ts';
import { start, type Process } from './process.ts';
import { SimulatorRandom } from './random.ts';
import { SimGroup } from './sim-group.ts';
import { mean, printTable, quantile, seconds } from './table.ts';
import { rest } from './workload.ts';

/**
 * Agent runs of one tenant: they come by chance, make their calls one after the other, and are done. Ten
 * slots, nearly all in use. The same runs, with the same calls, under each age credit.
 */

const SLOTS = 10;
const CALLS = 20;
const SERVICE_MS = 8_000;
const LOAD = 0.97;
const TO_MS = 12_000_000;

interface AgentsResult {
  readonly agentMs: number[];
  readonly waitMs: number[];
  /** By how much the latest call came after one that it overtook. */
  overtakenMs: number;
}

function run(
  ageCreditMs: number | null,
  variation: number,
  seeds: readonly number[],
): AgentsResult {
  const result: AgentsResult = { agentMs: [], waitMs: [], overtakenMs: 0 };
  for (const seed of seeds) runSeed(ageCreditMs, variation, seed, result);
  return result;
}

function runSeed(
  ageCreditMs: number | null,
  variation: number,
  seed: number,
  result: AgentsResult,
) {
  const clock = new Clock();
  const group = new SimGroup(clock, 'group', { slotsMax: SLOTS, ageCreditMs });
  group.onGrant = ({ ticketId }, { queue }) => {
    const at = enqueuedAt.get(ticketId) ?? 0;
    for (const { ticket } of queue.byTicket.values()) {
      result.overtakenMs = Math.max(result.overtakenMs, at - ticket.enqueuedAt);
    }
  };
  const enqueuedAt = new Map<string, number>();
  const arrivals = new SimulatorRandom(seed);
  start(arrive());
  clock.runTo(TO_MS);

  function* arrive(): Process {
    for (let count = 0; ; count += 1) {
      yield* rest(clock, arrivals.exponential((SERVICE_MS * CALLS) / SLOTS / LOAD));
      start(agent(`agent-${count}`, new SimulatorRandom(seed * 1_000_000 + count)));
    }
  }

  function* agent(name: string, random: SimulatorRandom): Process {
    const beganAt = clock.now;
    const calls = Math.max(1, Math.min(400, Math.round(random.lognormal(CALLS, variation))));
    for (let count = 0; count < calls; count += 1) {
      const ticket = someTicket(`${name}-${count}`, instant(START + clock.now), {
        holder: { ...SOMEBODY, agent: name },
        agentStartedAt: instant(START + beganAt),
      });
      enqueuedAt.set(ticket.id, ticket.enqueuedAt);
      const caller = new SimulatorCaller(clock, ticket, [group]);
      const askedAt = clock.now;
      yield* caller.admit();
      result.waitMs.push(clock.now - askedAt);
      yield* caller.run(random.lognormal(SERVICE_MS, 1));
      yield* rest(clock, random.exponential(3_000));
    }
    result.agentMs.push(clock.now - beganAt);
  }
}

describe.skipIf(isPartial)('agent runs', () => {
  const rows: string[][] = [];

  function reported(name: string, ageCreditMs: number | null, variation: number): AgentsResult {
    // Runs of similar length differ by little, so that takes more of them.
    const result = run(ageCreditMs, variation, variation === 0 ? [1, 2] : [1]);
    const { agentMs, waitMs, overtakenMs } = result;
    rows.push([
      name,
      `${result.agentMs.length}`,
      seconds(mean(agentMs)),
      seconds(quantile(agentMs, 0.95)),
      seconds(quantile(waitMs, 1)),
      seconds(overtakenMs),
    ]);
    return result;
  }

  afterAll(() => {
    const head = ['', 'runs', 'mean', 'p95', 'worst wait', 'overtaken by'];
    printTable('Time that agent runs take', head, rows);
  });

  test('of similar length end sooner when the oldest goes first', () => {
    const inTurn = reported('similar, first come first served', 0, 0);
    const bounded = reported('similar, credit of 120 s', 120_000, 0);
    const strict = reported('similar, strictly the oldest', null, 0);
    expect(mean(bounded.agentMs)).toBeLessThan(0.95 * mean(inTurn.agentMs));
    expect(quantile(bounded.agentMs, 0.95)).toBeLessThan(0.97 * quantile(inTurn.agentMs, 0.95));
    expect(mean(strict.agentMs)).toBeLessThan(mean(bounded.agentMs));
    expect(inTurn.overtakenMs).toBe(0);
    expect(bounded.overtakenMs).toBeLessThanOrEqual(120_000);
    expect(bounded.overtakenMs).toBeGreaterThan(60_000);
    expect(strict.overtakenMs).toBeGreaterThan(120_000);
  });

  test('of different length are delayed by the credit at most', () => {
    reported('different, first come first served', 0, 2);
    const short = reported('different, credit of 30 s', 30_000, 2);
    const bounded = reported('different, credit of 120 s', 120_000, 2);
    const strict = reported('different, strictly the oldest', null, 2);
    expect(short.overtakenMs).toBeLessThanOrEqual(30_000);
    expect(bounded.overtakenMs).toBeLessThanOrEqual(120_000);
    // Without a bound the short ones starve behind the long ones.
    expect(quantile(strict.waitMs, 1)).toBeGreaterThan(2 * quantile(bounded.waitMs, 1));
  });
});
