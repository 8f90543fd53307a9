import { setTimeout as delay } from 'node:timers/promises';
import { Caller } from './load.ts';

/** Calls that come at a steady pace, whatever becomes of those before them. */
export interface PacedLoad {
  readonly port: number;
  readonly callsPerS: number;
  /** The bytes of the next call. */
  readonly request: () => Buffer;
}

/** Connections at the beginning. More are opened when all are busy. */
const CONNECTIONS = 16;

/** Calls for so long. How long each call took, in milliseconds, in no order. */
export async function pacedCalls(load: PacedLoad, forMs: number): Promise<number[]> {
  const { port, callsPerS, request } = load;
  const all = await Promise.all(Array.from({ length: CONNECTIONS }, () => Caller.open(port)));
  const idle = [...all];
  const latenciesMs: number[] = [];
  const call = async (): Promise<void> => {
    let caller = idle.shift();
    if (caller === undefined) {
      caller = await Caller.open(port);
      all.push(caller);
    }
    const sentAt = performance.now();
    await caller.call(request());
    latenciesMs.push(performance.now() - sentAt);
    // To the end of the line: workerd closes a connection that rests for five seconds.
    idle.push(caller);
  };
  const startedAt = performance.now();
  const calls = Array.from(
    { length: Math.round((forMs / 1_000) * callsPerS) },
    async (_, index) => {
      await delay(Math.max(1, startedAt + (index * 1_000) / callsPerS - performance.now()));
      await call();
    },
  );
  try {
    await Promise.all(calls);
  } finally {
    for (const caller of all) caller.close();
  }
  return latenciesMs;
}
