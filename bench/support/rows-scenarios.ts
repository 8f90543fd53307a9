import { setTimeout as delay } from 'node:timers/promises';
import { LoadCaller, callsFor } from './load.ts';
import { pacedCalls } from './paced-load.ts';
import type { Counts, RowsGroup, RowsSubject } from './rows-subject.ts';
import { slowChatRequest } from './wire.ts';

/** Counts of a group over so many calls. */
export interface Written {
  readonly calls: number;
  readonly before: Counts;
  readonly after: Counts;
}

/** One way in which a group is called. */
export interface RowsScenario {
  readonly title: string;
  readonly group: RowsGroup;
  run(subject: RowsSubject, isQuick: boolean): Promise<Written>;
}

/** Rates that nobody has to wait for. A call is estimated at 256 tokens and its prompt. */
const GENEROUS = { rpm: 6_000, tpm: 2_000_000 };

const LONE = { calls: 12, everyMs: 5_000, tookMs: 500 };
const POOL = { slots: 64, callsPerS: 50, tookMs: 900, warmUpMs: 5_000, measuredMs: 30_000 };
const FULL = { tookMs: 300, warmUpMs: 2_000, measuredMs: 15_000 };
const SMALL = { slots: 2_000, callers: 32, warmUpMs: 2_000, measuredMs: 10_000 };

/** Calls of 10 s, in pools that they fill to 70 %: what platform-cost.md reckons with. */
const LONG = { tookMs: 10_000, warmUpMs: 12_000, measuredMs: 60_000 };

/** Length of what is measured in a quick run. */
const QUICK_MS = 3_000;

/** How long calls go on to come after the end, so that none of what is measured is the end. */
const BEYOND_MS = 1_000;

const requestFor = ({ name }: RowsGroup, tookMs: number): Buffer =>
  slowChatRequest(`/${name}/v1/chat/completions`, tookMs);

async function alone({ port }: RowsSubject, request: Buffer): Promise<void> {
  const caller = await LoadCaller.open(port);
  try {
    await caller.call(request);
  } finally {
    caller.close();
  }
}

/** One call now and then. What the pool writes when it has become empty counts, and the first call does not. */
function lone(slots: number, rates: Readonly<Record<string, number>> = {}): RowsScenario {
  const { everyMs, tookMs } = LONE;
  const group = {
    name: `lone-${slots}${ending(rates)}`,
    limits: { max_concurrency: slots, ...rates },
  };
  return {
    title: `Lone calls of ${tookMs / 1_000} s, one in ${everyMs / 1_000} s, limit ${slots}${withRates(rates)}`,
    group,
    async run(subject, isQuick) {
      const request = requestFor(group, tookMs);
      const calls = isQuick ? 1 : LONE.calls;
      await Promise.all([alone(subject, request), delay(everyMs)]);
      const before = await subject.counts(group.name);
      for (let call = 0; call < calls; call += 1) {
        await Promise.all([alone(subject, request), delay(everyMs)]);
      }
      return { calls, before, after: await subject.counts(group.name) };
    },
  };
}

interface RoomyPool {
  readonly slots: number;
  readonly callsPerS: number;
  readonly tookMs: number;
  readonly warmUpMs: number;
  readonly measuredMs: number;
}

/** A pool with room, whose calls come at random moments. */
function roomy(pool: RoomyPool, rates: Readonly<Record<string, number>> = {}): RowsScenario {
  const { slots, callsPerS, tookMs, warmUpMs } = pool;
  const group = {
    name: `pool-${slots}${ending(rates)}`,
    limits: { max_concurrency: slots, ...rates },
  };
  const used = ((callsPerS * tookMs) / 10 / slots).toFixed(0);
  return {
    title: `${slots} slots, ${used} % in use: ${callsPerS} calls/s of ${tookMs / 1_000} s${withRates(rates)}`,
    group,
    async run(subject, isQuick) {
      const { port } = subject;
      const measuredMs = isQuick ? QUICK_MS : pool.measuredMs;
      const request = requestFor(group, tookMs);
      let calls = 0;
      const next = (): Buffer => {
        calls += 1;
        return request;
      };
      const load = { port, callsPerS, pace: 'random', request: next } as const;
      const over = pacedCalls(load, warmUpMs + measuredMs + BEYOND_MS);
      const measured = async (): Promise<Written> => {
        await delay(warmUpMs);
        const before = await subject.counts(group.name);
        const callsBefore = calls;
        await delay(measuredMs);
        return { before, calls: calls - callsBefore, after: await subject.counts(group.name) };
      };
      const [written] = await Promise.all([measured(), over]);
      return written;
    },
  };
}

interface ClosedLoop {
  readonly title: string;
  readonly group: RowsGroup;
  readonly callers: number;
  readonly tookMs: number;
  readonly warmUpMs: number;
  readonly measuredMs: number;
}

/** Callers that each send the next call when the last one has ended. */
function closedLoop(loop: ClosedLoop): RowsScenario {
  const { title, group, callers, tookMs, warmUpMs } = loop;
  return {
    title,
    group,
    async run(subject, isQuick) {
      const marks: Promise<Counts>[] = [];
      const request = requestFor(group, tookMs);
      const load = {
        port: subject.port,
        request: () => request,
        callers,
        mark: () => marks.push(subject.counts(group.name)),
      };
      const { calls } = await callsFor(load, warmUpMs, isQuick ? QUICK_MS : loop.measuredMs);
      const [before, after] = await Promise.all(marks);
      if (before === undefined || after === undefined) throw new Error('not counted');
      return { calls, before, after };
    },
  };
}

function saturated(slots: number, timing = FULL): RowsScenario {
  const callers = 2 * slots;
  return closedLoop({
    title: `${slots} slots, all in use: ${callers} callers, calls of ${timing.tookMs / 1_000} s`,
    group: { name: `full-${slots}`, limits: { max_concurrency: slots } },
    callers,
    ...timing,
  });
}

function small(): RowsScenario {
  const { slots, callers } = SMALL;
  return closedLoop({
    title: `Small calls, ${callers} callers, limit ${slots}`,
    group: { name: 'small', limits: { max_concurrency: slots } },
    tookMs: 0,
    ...SMALL,
  });
}

const ending = (rates: object): string => (Object.keys(rates).length === 0 ? '' : '-rates');

const withRates = (rates: object): string =>
  Object.keys(rates).length === 0 ? '' : ', rpm and tpm';

/** Those that take a minute and little work: all at once. */
export const LONE_CALLS = {
  few: lone(4),
  many: lone(64),
  fewMetered: lone(4, GENEROUS),
  manyMetered: lone(64, GENEROUS),
  perDay100K: roomy({ ...LONG, slots: 17, callsPerS: 1.16 }),
  perDay500K: roomy({ ...LONG, slots: 83, callsPerS: 5.8 }),
  perDay1250K: roomy({ ...LONG, slots: 207, callsPerS: 14.5 }),
  fullPerDay1250K: saturated(145, LONG),
};

/** Those that keep a machine busy: one after the other. */
export const LOADS = {
  roomy: roomy(POOL),
  roomyMetered: roomy(POOL, GENEROUS),
  full8: saturated(8),
  full16: saturated(16),
  full64: saturated(64),
  small: small(),
};
