// Members of four slots each, of which one takes fewer calls at once, or none: what callers see, and what is lost.
import { describe, expect, test } from 'vitest';
import { instant, memberId } from '../../../src/core/words/ids.ts';
import { SERVED, takesOut, type RefusalKind } from '../../../src/core/words/signal.ts';
import { SOMEBODY, someMember, someTicket, START } from '../../support/core-builders.ts';
import { someOf } from '../runs.ts';
import { Clock } from './clock.ts';
import { SimulatorRandom } from './random.ts';
import { SimGroup } from './sim-group.ts';

const SLOTS_EACH = 4;
const TAKES = 2;
const CALLERS = 40;
const SERVICE_MS = 3_000;
/** How long a refusal takes to come. */
const REFUSAL_MS = 50;
const FOR_MS = 600_000;

interface RefusingMemberSeen {
  /** Milliseconds that calls ran where they were served. */
  servedMs: number;
  served: number;
  refused: number;
  /** Calls that every member has refused, and the most refusals of one call. */
  failed: number;
  refusalsMax: number;
  /** The calls that were granted for the first time, in their order. */
  readonly order: number[];
  /** Calls that came later than one that was refused and waited again, and went before it where it could go. */
  overtaken: number;
}

/** How a member refuses, and how many members there are. */
interface RefusingMemberPath {
  readonly members: number;
  readonly takes: number;
  readonly kind: RefusalKind;
  readonly forMs: number;
}

function simulate(
  seed: number,
  { members: count, takes, kind, forMs }: RefusingMemberPath,
): RefusingMemberSeen {
  const clock = new Clock();
  const random = new SimulatorRandom(seed);
  const ids = ['bad', 'm1', 'm2', 'm3', 'm4'].slice(0, count);
  const members = ids.map((id) => someMember(id, { slotsMax: SLOTS_EACH }));
  const affinity = { by: 'none', forMs: 300_000, waitMs: 2_000 } as const;
  const group = new SimGroup(clock, 'group', { slotsMax: Infinity, members, affinity });
  const none = { servedMs: 0, served: 0, refused: 0, failed: 0, refusalsMax: 0, overtaken: 0 };
  const seen: RefusingMemberSeen = { ...none, order: [] };
  /** Calls that were refused and wait again, and when they came. */
  const back = new Map<number, number>();
  let calls = 0;
  let runsAtBad = 0;
  const begin = (): void => {
    if (clock.now < forMs) ask(calls++, instant(START + clock.now), 1, []);
  };
  const ask = (
    call: number,
    enqueuedAt: ReturnType<typeof instant>,
    attempt: number,
    excluded: readonly { readonly member: string; readonly refusedAt: number }[],
  ): void => {
    const holder = { ...SOMEBODY };
    const ticket = someTicket(`call-${call}`, enqueuedAt, {
      holder,
      excluded: excluded.map((one) => memberId(one.member)),
    });
    group.ask(ticket, attempt, 1e9, (answer) => {
      if (answer.kind !== 'granted') throw new Error(`${call} was not granted: ${answer.kind}`);
      const { leaseId } = answer;
      const member: string = group.state.leases.get(leaseId)?.member ?? '';
      if (attempt === 1) seen.order.push(call);
      back.delete(call);
      const mightGo = member === 'bad' ? [] : [...back.values()];
      seen.overtaken += mightGo.filter((cameAt) => cameAt < enqueuedAt).length;
      const isRefused = member === 'bad' && runsAtBad >= takes;
      if (isRefused) {
        seen.refused += 1;
        seen.refusalsMax = Math.max(seen.refusalsMax, excluded.length + 1);
        clock.after(REFUSAL_MS, () => {
          const refusedAt = clock.now;
          const signal = { ...SERVED, kind };
          group.send({ kind: 'report', leaseId, signal, isRepeat: false });
          group.release(ticket, leaseId, 'refused');
          if (excluded.length + 1 < members.length) {
            back.set(call, enqueuedAt);
            ask(call, enqueuedAt, attempt + 1, [...excluded, { member: 'bad', refusedAt }]);
          } else {
            seen.failed += 1;
            begin();
          }
        });
        return;
      }
      if (member === 'bad') runsAtBad += 1;
      const blamed = excluded.map((one) => {
        return { member: memberId(one.member), kind, agoMs: clock.now - one.refusedAt };
      });
      const signal = { ...SERVED, blamed };
      group.send({ kind: 'report', leaseId, signal, isRepeat: false });
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
  clock.runTo(forMs);
  return seen;
}

test.each(someOf([1, 2, 3]))(
  'no caller sees a refusal, and next to nothing is lost: seed %i',
  (seed) => {
    const way = { members: 4, takes: TAKES, kind: 'concurrency', forMs: FOR_MS } as const;
    const { servedMs, failed, refused, refusalsMax } = simulate(seed, way);
    const ideal = (3 * SLOTS_EACH + TAKES) * FOR_MS;
    expect(refused).toBeGreaterThan(0);
    expect(failed).toBe(0);
    expect(refusalsMax).toBe(1);
    expect(servedMs / ideal).toBeGreaterThanOrEqual(0.95);
  },
);

describe.each(['concurrency', 'unknown', 'overload', 'unauthorized', 'quota'] as const)(
  'a member that refuses everything for %s',
  (kind) => {
    test.each(someOf([2, 3, 4, 5]))(
      'costs each call one try at most, and none its place: of %i members',
      (members) => {
        const forMs = 120_000;
        const seen = simulate(1, { members, takes: 0, kind, forMs });
        expect(seen.refused).toBeGreaterThan(0);
        // Who had come by when it went out, and a probe.
        expect(seen.refused).toBeLessThanOrEqual(takesOut(kind) ? CALLERS + 1 : Infinity);
        expect(seen.failed).toBe(0);
        expect(seen.refusalsMax).toBeLessThanOrEqual(1);
        expect(seen.servedMs / ((members - 1) * SLOTS_EACH * forMs)).toBeGreaterThan(0.9);
        expect(seen.order).toEqual(seen.order.toSorted((a, b) => a - b));
        expect(seen.overtaken).toBe(0);
      },
    );
  },
);
