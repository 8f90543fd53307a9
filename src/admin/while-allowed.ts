interface GuardedStream {
  readonly body: ReadableStream;
  readonly ended: Promise<void>;
}

/** Forwards a stream while `isAllowed` returns true. It is called periodically. */
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
    .catch(() => {}) // The reader disconnected, the hub was reset, or access was revoked.
    .finally(() => clearInterval(timer));
  return { body: readable, ended };
}
