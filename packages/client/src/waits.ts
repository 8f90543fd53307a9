/** Milliseconds on a monotonic clock. Only differences are meaningful. */
export const steadyNow = (): number => performance.now();

/** Waits and keeps the process alive. Rejects with the signal's reason. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, timerMs(ms));
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** Settles with the promise, or rejects with the signal's reason if that is first. The promise itself continues. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** Settles with the promise, or rejects with an error after `ms`. The promise itself continues. */
export async function within<T>(promise: Promise<T>, ms: number, late: () => Error): Promise<T> {
  let cancel: () => void = () => {};
  const tooLate = new Promise<never>((_resolve, reject) => {
    cancel = later(ms, () => reject(late()));
  });
  try {
    return await Promise.race([promise, tooLate]);
  } finally {
    cancel();
  }
}

/** Adds up to 25 % at random, so that clients which wait for the same event do not retry at once. */
export const jittered = (ms: number): number => ms * (1 + Math.random() / 4);

/** Pause before the next attempt: 200 ms after the first failure, doubled each time, at most 5 s, plus jitter. */
export const backOff = (failures: number): number => jittered(Math.min(100 * 2 ** failures, 5_000));

/** Bounds a time to the range of timers, which treat a longer one as 0. */
const timerMs = (ms: number): number => Math.min(Math.max(0, ms), 2 ** 31 - 1);

/** Runs a function later without keeping the process alive. Returns a function that cancels it. */
export function later(ms: number, what: () => void): () => void {
  const timer: unknown = setTimeout(what, timerMs(ms));
  // Timers are objects in Node and numbers in browsers.
  if (typeof timer === 'object' && timer !== null && 'unref' in timer) {
    (timer as { unref(): void }).unref();
  }
  return () => clearTimeout(timer as number);
}
