import { setTimeout as delay } from 'node:timers/promises';
import { LoadCaller } from './load.ts';

/** Calls that come at a pace of their own, whatever becomes of those before them. */
export interface PacedLoad {
  readonly port: number;
  readonly callsPerS: number;
  /** `random`: at moments that know nothing of each other, the same in each run. @default steady */
  readonly pace?: 'steady' | 'random';
  /** The bytes of the next call. */
  readonly request: () => Buffer;
}

/** Connections at the beginning. More are opened when all are busy. */
const CONNECTIONS = 16;

/** How long a connection may rest: workerd closes one after five seconds. */
const REST_MAX_MS = 4_000;

/** Milliseconds from the beginning to each call. */
function momentsOf({ callsPerS, pace }: PacedLoad, forMs: number): number[] {
  const everyMs = 1_000 / callsPerS;
  let seed = 1;
  let at = 0;
  return Array.from({ length: Math.round(forMs / everyMs) }, (_, index) => {
    if (pace !== 'random') return index * everyMs;
    seed = (seed * 48_271) % 2_147_483_647;
    at -= Math.log(seed / 2_147_483_647) * everyMs;
    return at;
  });
}

/** Calls for so long. How long each call took, in milliseconds, in no order. */
export async function pacedCalls(load: PacedLoad, forMs: number): Promise<number[]> {
  const { port, request } = load;
  const all = await Promise.all(Array.from({ length: CONNECTIONS }, () => LoadCaller.open(port)));
  const openedAt = performance.now();
  const idle = all.map((caller) => ({ caller, since: openedAt }));
  const latenciesMs: number[] = [];
  const call = async (): Promise<void> => {
    const rested = idle.shift();
    let caller = rested?.caller;
    if (caller === undefined || performance.now() - (rested?.since ?? 0) > REST_MAX_MS) {
      caller = await LoadCaller.open(port);
      all.push(caller);
    }
    const sentAt = performance.now();
    await caller.call(request());
    latenciesMs.push(performance.now() - sentAt);
    // To the end of the line, so that none rests for long.
    idle.push({ caller, since: performance.now() });
  };
  const startedAt = performance.now();
  const calls = momentsOf(load, forMs).map(async (moment) => {
    await delay(Math.max(1, startedAt + moment - performance.now()));
    await call();
  });
  try {
    await Promise.all(calls);
  } finally {
    for (const caller of all) caller.close();
  }
  return latenciesMs;
}
