/** Milliseconds on a monotonic clock. Only differences have a meaning. */
export const steadyNow = (): number => performance.now();

/** Waits, in a way that keeps a process alive. Rejects with the signal's reason. */
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

/** Gives a promise's outcome, or the signal's reason if that is first. The promise itself goes on. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** Gives a promise's outcome, or an error where it takes longer. The promise itself goes on. */
export async function within<T>(promise: Promise<T>, ms: number, late: () => Error): Promise<T> {
  let callOff: () => void = () => {};
  const tooLate = new Promise<never>((_resolve, reject) => {
    callOff = later(ms, () => reject(late()));
  });
  try {
    return await Promise.race([promise, tooLate]);
  } finally {
    callOff();
  }
}

/** Adds up to a quarter by chance, so that many who wait for one thing do not come back at once. */
export const jittered = (ms: number): number => ms * (1 + Math.random() / 4);

/** Pause before a try after so many failures: 200 ms, twice as long each time, 5 s at the most. */
export const backOff = (failures: number): number => jittered(Math.min(100 * 2 ** failures, 5_000));

/** Bounds a time to what timers take: they take a longer one for none. */
const timerMs = (ms: number): number => Math.min(Math.max(0, ms), 2 ** 31 - 1);

/** Does something later, without keeping a process alive for it. Returns how to call it off. */
export function later(ms: number, what: () => void): () => void {
  const timer: unknown = setTimeout(what, timerMs(ms));
  // Node's timers are objects, those of browsers numbers.
  if (typeof timer === 'object' && timer !== null && 'unref' in timer) {
    (timer as { unref(): void }).unref();
  }
  return () => clearTimeout(timer as number);
}
