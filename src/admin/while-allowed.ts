/** A stream to pass on, and when it is over. */
interface GuardedStream {
  readonly body: ReadableStream;
  readonly ended: Promise<void>;
}

/** Passes a stream on for as long as `isAllowed` says so, which is asked now and then. */
export function whileAllowed(
  source: ReadableStream,
  isAllowed: () => Promise<boolean>,
  everyMs: number,
): GuardedStream {
  const { readable, writable } = new IdentityTransformStream();
  const stop = new AbortController();
  const check = async (): Promise<void> => {
    if (!(await isAllowed())) stop.abort(new Error('not allowed any more'));
  };
  const timer = setInterval(() => {
    check().catch(() => {});
  }, everyMs);
  const ended = source
    .pipeTo(writable, { signal: stop.signal })
    .catch(() => {}) // The reader left, the hub was reset, or it is not allowed any more.
    .finally(() => clearInterval(timer));
  return { body: readable, ended };
}
