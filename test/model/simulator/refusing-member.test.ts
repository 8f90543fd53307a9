// Four members of four slots, of which one takes but two calls at once: what callers see, and what is lost.
import { expect, test } from 'vitest';
import { instant, memberId } from '../../../src/core/words/ids.ts';
import { SERVED } from '../../../src/core/words/signal.ts';
import { SOMEBODY, someMember, someTicket, START } from '../../support/core-builders.ts';
import { Clock } from './clock.ts';
import { Random } from './random.ts';
import { SimGroup } from './sim-group.ts';

const SLOTS_EACH = 4;
const TAKES = 2;
const CALLERS = 40;
const SERVICE_MS = 3_000;
/** How long a refusal takes to come. */
const REFUSAL_MS = 50;
const FOR_MS = 600_000;

interface Seen {
  /** Milliseconds that calls ran where they were served. */
  servedMs: number;
  served: number;
  refused: number;
  /** Calls that every member has refused, and the most refusals of one call. */
  failed: number;
  refusalsMax: number;
  /** The calls that were granted for the first time, in their order. */
  readonly order: number[];
}

function simulate(seed: number, takes: number): Seen {
  const clock = new Clock();
  const random = new Random(seed);
  const members = ['bad', 'm1', 'm2', 'm3'].map((id) => someMember(id, { slotsMax: SLOTS_EACH }));
  const affinity = { by: 'none', forMs: 300_000, waitMs: 2_000 } as const;
  const group = new SimGroup(clock, 'group', { slotsMax: Infinity, members, affinity });
  const seen: Seen = { servedMs: 0, served: 0, refused: 0, failed: 0, refusalsMax: 0, order: [] };
  let calls = 0;
  let runsAtBad = 0;
  const begin = (): void => {
    if (clock.now < FOR_MS) ask(calls++, instant(START + clock.now), 1, []);
  };
  const ask = (
    call: number,
    enqueuedAt: ReturnType<typeof instant>,
    attempt: number,
    excluded: readonly string[],
  ): void => {
    const holder = { ...SOMEBODY };
    const ticket = someTicket(`call-${call}`, enqueuedAt, {
      holder,
      excluded: excluded.map(memberId),
    });
    group.ask(ticket, attempt, 1e9, (answer) => {
      if (answer.kind !== 'granted') throw new Error(`${call} was not granted: ${answer.kind}`);
      const { leaseId } = answer;
      const member: string = group.state.leases.get(leaseId)?.member ?? '';
      if (attempt === 1) seen.order.push(call);
      const isRefused = member === 'bad' && runsAtBad >= takes;
      if (isRefused) {
        seen.refused += 1;
        seen.refusalsMax = Math.max(seen.refusalsMax, excluded.length + 1);
        clock.after(REFUSAL_MS, () => {
          const signal = { ...SERVED, kind: 'concurrency' } as const;
          group.send({ kind: 'report', leaseId, signal, isRepeat: false });
          group.release(ticket, leaseId, 'refused');
          if (excluded.length + 1 < members.length) {
            ask(call, enqueuedAt, attempt + 1, [...excluded, member]);
          } else {
            seen.failed += 1;
            begin();
          }
        });
        return;
      }
      if (member === 'bad') runsAtBad += 1;
      group.send({ kind: 'report', leaseId, signal: SERVED, isRepeat: false });
      const runMs = random.lognormal(SERVICE_MS, 0.5);
      clock.after(runMs, () => {
        if (member === 'bad') runsAtBad -= 1;
        seen.served += 1;
        seen.servedMs += runMs;
        group.release(ticket, leaseId, 'success');
        begin();
      });
    });
  };
  for (let caller = 0; caller < CALLERS; caller += 1) begin();
  clock.runTo(FOR_MS);
  return seen;
}

test.each([1, 2, 3])('no caller sees a refusal, and next to nothing is lost: seed %i', (seed) => {
  const { servedMs, failed, refused, refusalsMax } = simulate(seed, TAKES);
  const ideal = (3 * SLOTS_EACH + TAKES) * FOR_MS;
  expect(refused).toBeGreaterThan(0);
  expect(failed).toBe(0);
  expect(refusalsMax).toBe(1);
  expect(servedMs / ideal).toBeGreaterThanOrEqual(0.95);
});

test('a member that refuses everything costs each call one try at most, and none its place', () => {
  const { servedMs, failed, refusalsMax, order } = simulate(1, 0);
  expect(failed).toBe(0);
  expect(refusalsMax).toBeLessThanOrEqual(1);
  expect(servedMs / (3 * SLOTS_EACH * FOR_MS)).toBeGreaterThanOrEqual(0.95);
  expect(order).toEqual(order.toSorted((a, b) => a - b));
});
