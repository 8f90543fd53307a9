import { instant, memberId } from '../../../src/core/words/ids.ts';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import type { LeaseId } from '../../../src/core/words/ids.ts';
import { SOMEBODY, someMember, someTicket, START } from '../../support/core-builders.ts';
import { Clock } from './clock.ts';
import { SimulatorRandom } from './random.ts';
import { SimGroup } from './sim-group.ts';

/**
 * Agents that call at random through several keys of the same number of slots, and the ways to choose the key: the
 * group's own at each grant, where agents keep their key or not; by the agent's name; in turn. The last two have a queue before each key, which is what a
 * gateway comes to that chooses first.
 */
export const WAYS = ['members', 'members, no affinity', 'static hashing', 'round robin'] as const;

export type SeveralKeysPath = (typeof WAYS)[number];

export interface SeveralKeysLoad {
  readonly way: SeveralKeysPath;
  readonly keys: number;
  readonly slotsEach: number;
  /** Part of all slots that calls would use on average. */
  readonly load: number;
  readonly agents: number;
  readonly serviceMs: number;
  /** Coefficient of variation of the service time. */
  readonly variation: number;
  readonly calls: number;
  readonly seed: number;
}

/** The waits of all calls, and how many of those that could have kept the key of their agent's last call did. */
export interface SeveralKeysOutcome {
  readonly waitsMs: readonly number[];
  readonly keptShare: number;
}

/** How long an agent is remembered after its last call, by default. */
const REMEMBERED_MS = 300_000;

/** The part of the calls at the begin that do not count: the queues fill. */
const WARM_SHARE = 0.1;

/** Runs calls until all have ended. */
export function simulate(load: SeveralKeysLoad): SeveralKeysOutcome {
  const { way, keys, agents, calls, serviceMs, variation, seed } = load;
  const clock = new Clock();
  const random = new SimulatorRandom(seed);
  const site = siteOf(clock, load);
  const lastRun = new Map<number, { readonly key: string; readonly at: number }>();
  const waitsMs: number[] = [];
  let [kept, keepable] = [0, 0];
  const idle = Array.from({ length: agents }, (_, agent) => agent);
  const meanGapMs = serviceMs / (load.load * keys * load.slotsEach);
  const call = (index: number): void => {
    const agent = takeIdle(idle, random);
    const runMs = random.lognormal(serviceMs, variation);
    const at = clock.now;
    site.call({ index, agent }, (key, release) => {
      clock.after(runMs, () => {
        release();
        idle.push(agent);
      });
      const last = lastRun.get(agent);
      lastRun.set(agent, { key, at: clock.now });
      if (index < calls * WARM_SHARE) return;
      waitsMs.push(clock.now - at);
      // Of a call that comes later the cache at the provider has forgotten the prompt, and so has the group.
      if (last === undefined || at - last.at >= REMEMBERED_MS) return;
      keepable += 1;
      if (last.key === key) kept += 1;
    });
    if (index + 1 < calls) clock.after(random.exponential(meanGapMs), () => call(index + 1));
  };
  call(0);
  clock.runTo(calls * meanGapMs * 2 + 600_000);
  if (waitsMs.length < calls * (1 - WARM_SHARE)) throw new Error(`${way}: calls are still waiting`);
  return { waitsMs: waitsMs.toSorted((a, b) => a - b), keptShare: kept / keepable };
}

/** Takes an agent at random that has no call under way: each makes one after the other. */
function takeIdle(idle: number[], random: SimulatorRandom): number {
  const [agent] = idle.splice(random.below(idle.length), 1);
  if (agent === undefined) throw new Error('more calls are under way than there are agents');
  return agent;
}

/** Picks the wait that so large a part of the calls does not exceed. */
export function percentile({ waitsMs }: SeveralKeysOutcome, part: number): number {
  return waitsMs[Math.min(waitsMs.length - 1, Math.floor(part * waitsMs.length))] ?? 0;
}

interface SeveralKeysCaller {
  readonly index: number;
  readonly agent: number;
}

interface Site {
  call(caller: SeveralKeysCaller, run: (key: string, release: () => void) => void): void;
}

function siteOf(clock: Clock, { way, keys, slotsEach }: SeveralKeysLoad): Site {
  const names = Array.from({ length: keys }, (_, index) => `key-${index}`);
  const fixed: Partial<GroupSettings> = { isAdaptive: false };
  if (way.startsWith('members')) {
    const members = names.map((name) => someMember(name, { ...fixed, slotsMax: slotsEach }));
    const by = way === 'members' ? 'agent' : 'none';
    const affinity = { by, forMs: REMEMBERED_MS, waitMs: 2_000 } as const;
    const group = new SimGroup(clock, way, { ...fixed, slotsMax: Infinity, members, affinity });
    return { call: (caller, run) => callAt(clock, group, caller, run) };
  }
  const groups = names.map((name) => {
    const one = [someMember(name, { ...fixed, slotsMax: slotsEach })];
    return new SimGroup(clock, name, { ...fixed, slotsMax: Infinity, members: one });
  });
  const choose = ({ index, agent }: SeveralKeysCaller): number =>
    way === 'round robin' ? index % keys : agent % keys;
  return {
    call(caller, run) {
      const group = groups[choose(caller)];
      if (group !== undefined) callAt(clock, group, caller, run);
    },
  };
}

const SLICE_MS = 1e9;

function callAt(
  clock: Clock,
  group: SimGroup,
  { index, agent }: SeveralKeysCaller,
  run: Parameters<Site['call']>[1],
): void {
  const holder = { ...SOMEBODY, agent: `agent-${agent}` };
  const ticket = someTicket(`call-${index}`, instant(START + clock.now), { holder });
  group.ask(ticket, 1, SLICE_MS, (answer) => {
    if (answer.kind !== 'granted') throw new Error(`call ${index} was not granted: ${answer.kind}`);
    const { leaseId } = answer;
    keepAlive(clock, group, leaseId);
    const member = group.state.leases.get(leaseId)?.member ?? memberId('');
    run(member, () => group.release(ticket, leaseId, 'success'));
  });
}

const RENEW_MS = 15_000;

function keepAlive(clock: Clock, group: SimGroup, leaseId: LeaseId): void {
  clock.after(RENEW_MS, () => {
    if (!group.state.leases.has(leaseId)) return;
    group.send({ kind: 'renew', leaseId });
    keepAlive(clock, group, leaseId);
  });
}
