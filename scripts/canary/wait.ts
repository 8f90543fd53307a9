import { setTimeout as delay } from 'node:timers/promises';

export interface CanaryUntilOptions {
  readonly withinMs: number;
  readonly everyMs?: number;
  readonly signal?: AbortSignal;
}

/** Polls until the condition holds. Returns the elapsed milliseconds, or null if it did not hold in time. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  { withinMs, everyMs = 100, signal }: CanaryUntilOptions,
): Promise<number | null> {
  const startedAt = performance.now();
  while (!(await condition())) {
    if (performance.now() - startedAt > withinMs) return null;
    await delay(everyMs, undefined, { ...(signal !== undefined && { signal }) });
  }
  return performance.now() - startedAt;
}

/** Creates a promise that is settled from outside. Node 20 has no `Promise.withResolvers`. */
export function promised<Value>() {
  let resolve: (value: Value) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<Value>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
