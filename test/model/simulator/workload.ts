import type { Ticket } from '../../../src/core/words/ticket.ts';
import { instant } from '../../../src/core/words/ids.ts';
import { SOMEBODY, someTicket, START } from '../../support/core-builders.ts';
import { SimulatorCaller, type Declined } from './caller.ts';
import type { Clock } from './clock.ts';
import { start, wait, type Process } from './process.ts';
import { SimulatorRandom } from './random.ts';
import type { SimGroup } from './sim-group.ts';

/** Callers that call again as soon as they have thought about the answer. */
export interface WorkloadCrowd {
  readonly tenant: string;
  readonly agent?: string;
  readonly size: number;
  readonly serviceMs: number;
  /** Coefficient of variation of the service time. */
  readonly variation?: number;
  readonly thinkMs?: number;
  readonly lane?: Ticket['lane'];
  readonly slots?: number;
  /** It calls in the first half of every such period, and is silent in the other. */
  readonly onOffMs?: number;
  readonly groups: readonly SimGroup[];
}

/** The service of a crowd since it was last asked. */
export class WorkloadLedger {
  /** Slot-milliseconds at the upstream. */
  slotMs = 0;
  calls = 0;
  readonly waitsMs: number[] = [];
}

/** Begins the callers of a crowd. What they had before `fromMs` does not count. */
export function gather(
  clock: Clock,
  callersAtOnce: WorkloadCrowd,
  fromMs: number,
  seed: number,
): WorkloadLedger {
  const ledger = new WorkloadLedger();
  const declined = new Map<SimGroup, Declined>();
  for (let index = 0; index < callersAtOnce.size; index += 1) {
    const random = new SimulatorRandom(seed * 1_000 + index);
    start(
      member(
        clock,
        callersAtOnce,
        `${callersAtOnce.tenant}-${callersAtOnce.agent ?? ''}-${seed}-${index}`,
      ),
    );

    function* member(time: Clock, own: WorkloadCrowd, name: string): Process {
      const { thinkMs = 0, slots = 1, onOffMs } = own;
      yield* rest(time, random.exponential(100));
      for (let count = 0; ; count += 1) {
        const isOff = onOffMs !== undefined && time.now % onOffMs >= onOffMs / 2;
        if (isOff) yield* rest(time, onOffMs - (time.now % onOffMs));
        if (thinkMs > 0) yield* rest(time, random.exponential(thinkMs));
        const ticket = ticketOf(own, `${name}-${count}`, time.now);
        const caller = new SimulatorCaller(time, ticket, own.groups, declined);
        const askedAt = time.now;
        if (!(yield* caller.admit())) throw new Error(`${name} was refused`);
        if (time.now >= fromMs) ledger.waitsMs.push(time.now - askedAt);
        const beganAt = time.now;
        yield* caller.run(random.lognormal(own.serviceMs, own.variation ?? 1));
        if (time.now < fromMs) continue;
        ledger.slotMs += slots * (time.now - Math.max(beganAt, fromMs));
        ledger.calls += 1;
      }
    }
  }
  return ledger;
}

function ticketOf(
  { tenant, agent: run, lane, slots }: WorkloadCrowd,
  name: string,
  at: number,
): Ticket {
  return someTicket(name, instant(START + at), {
    holder: { ...SOMEBODY, tenant, agent: run ?? null },
    lane: lane ?? 'normal',
    slots: slots ?? 1,
  });
}

/** Lets time pass for one process. */
export function* rest(clock: Clock, ms: number): Process {
  yield* wait<void>((resume) => clock.after(ms, resume));
}

/** Max-min fair shares of `capacity`, by weight: nobody gets more than it asks for. */
export function fairShares(
  capacity: number,
  parties: readonly { readonly demand: number; readonly weight: number }[],
): number[] {
  const shares = parties.map(() => 0);
  let open = parties.map((party, index) => ({ ...party, index }));
  let left = capacity;
  while (open.length > 0) {
    const weights = open.reduce((sum, { weight }) => sum + weight, 0);
    const level = left / weights;
    const modest = open.filter(({ demand, weight }) => demand <= level * weight);
    for (const { index, weight } of open) shares[index] = level * weight;
    if (modest.length === 0) break;
    for (const { index, demand } of modest) {
      shares[index] = demand;
      left -= demand;
    }
    open = open.filter((party) => !modest.includes(party));
  }
  return shares;
}
