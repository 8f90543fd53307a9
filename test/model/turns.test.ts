import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { instant } from '../../src/core/words/ids.ts';
import type { ActiveLease } from '../../src/core/state.ts';
import { LANES, type Lane } from '../../src/core/words/ticket.ts';
import { TestGroup, type AskOptions } from '../support/core-builders.ts';
import { runs } from './runs.ts';

/** The promises of the order, said without saying how: for whatever calls come, and whatever they claim. */

interface TurnsArrival {
  readonly afterMs: number;
  readonly options: AskOptions;
}

const agentArb = fc.constantFrom(null, 'run-1', 'run-2', 'run-3');

/** Claims of all sorts: honest, of the future, of the far past. */
const agentMsArb = fc.constantFrom(undefined, 0, 1_000, 100_000, -999_999_999, 999_999_999);

function arrivalsArb(options: fc.Arbitrary<AskOptions>): fc.Arbitrary<TurnsArrival[]> {
  const arrival = fc.record({ afterMs: fc.constantFrom(0, 1, 500, 20_000, 90_000), options });
  return fc.array(arrival, { minLength: 2, maxLength: 25, size: 'max' });
}

/** The only lease of a group whose calls go one at a time. */
function current(group: TestGroup): ActiveLease {
  const [lease] = group.state.leases.values();
  assert.ok(lease !== undefined, 'nobody holds');
  return lease;
}

test('nobody goes before one of its tenant who came earlier by more than the age credit', () => {
  const options = fc.record({ agent: agentArb, agentMs: agentMsArb }) as fc.Arbitrary<AskOptions>;
  fc.assert(
    fc.property(arrivalsArb(options), fc.constantFrom(0, 1_000, 120_000), (arrivals, creditMs) => {
      const group = new TestGroup({ slotsMax: 0, timeoutMs: 1e9, ageCreditMs: creditMs });
      for (const [index, { afterMs, options: own }] of arrivals.entries()) {
        group.now = instant(group.now + afterMs);
        group.ask(`t${index}`, { sliceMs: 1e9, ...own });
      }
      const cameAt = new Map<string, number>();
      for (const { ticket } of group.state.queue.byTicket.values()) {
        cameAt.set(ticket.id, ticket.enqueuedAt);
      }
      group.reconfigure({ slotsMax: 1 });
      const order = arrivals.map(() => {
        const { ticketId } = current(group);
        group.release(ticketId, 'unused');
        return cameAt.get(ticketId) ?? NaN;
      });
      for (const [index, came] of order.entries()) {
        const earliestLeft = Math.min(...order.slice(index));
        assert.ok(came - earliestLeft <= creditMs, `overtaken by ${came - earliestLeft} ms`);
      }
    }),
    runs(500),
  );
});

test('calls of one tenant go in the order of their age, however wide they are', () => {
  const options = fc.record({ slots: fc.constantFrom(1, 2, 3) }) as fc.Arbitrary<AskOptions>;
  const caps = fc.constantFrom({ slotsMaxEach: Infinity }, { slotsMaxEach: 3 });
  fc.assert(
    fc.property(arrivalsArb(options), caps, fc.constantFrom(3, 5), (arrivals, cap, slotsMax) => {
      const group = new TestGroup({ slotsMax: 0, timeoutMs: 1e9, ...cap });
      for (const [index, { options: own }] of arrivals.entries()) {
        group.ask(`t${index}`, { sliceMs: 1e9, enqueuedMs: index, ...own });
      }
      const order: string[] = [];
      let reported = group.reconfigure({ slotsMax });
      while (order.length < arrivals.length) {
        order.push(...reported.filter((answer) => answer.startsWith('grant')));
        reported = group.release(current(group).ticketId);
      }
      assert.deepEqual(
        order,
        arrivals.map((_, index) => `grant t${index}.1`),
      );
    }),
    runs(300),
  );
});

const shareArb = fc.constantFrom(0, 0.05, 0.1, 0.3, 0.5);

test('a lane gets its share of any run of grants, but for one, and with none it starves', () => {
  fc.assert(
    fc.property(shareArb, shareArb, fc.nat(3), (normal, low, tenants) => {
      const group = new TestGroup({ slotsMax: 0, laneShares: { high: 0, normal, low } });
      const granted: Lane[] = [];
      const came: Record<Lane, number> = { high: 0, normal: 0, low: 0 };
      const come = (lane: Lane) => {
        const tenant = `tenant-${came[lane] % (1 + tenants)}`;
        group.ask(`${lane}${came[lane]++}`, { lane, tenant, sliceMs: 1e9 });
      };
      for (const lane of [...LANES, ...LANES]) come(lane);
      group.reconfigure({ slotsMax: 1 });
      for (let count = 0; count < 200; count += 1) {
        const { lane, ticketId } = current(group);
        granted.push(lane);
        come(lane);
        group.release(ticketId, 'unused');
      }
      for (const [lane, share] of Object.entries({ normal, low })) {
        if (share === 0) assert.ok(!granted.includes(lane as Lane), `${lane} has none`);
        for (let from = 0; from < granted.length; from += 1) {
          let got = 0;
          for (let to = from; to < granted.length; to += 1) {
            if (granted[to] === lane) got += 1;
            const due = Math.floor(share * (to + 1 - from) + 1e-9) - 1;
            assert.ok(got >= due, `${lane} got ${got} of the grants ${from} to ${to}`);
          }
        }
      }
      const high = granted.filter((lane) => lane === 'high').length;
      assert.ok(high >= Math.floor(200 * (1 - normal - low)) - 2, 'and nobody more than that');
    }),
    runs(100),
  );
});
