/**
 * Pipes a body and watches for silence: `onIdle` is called when the upstream sends nothing for `idleMs`,
 * and must abort `signal`. Costs JavaScript for every chunk, which the native pipe does not: only for
 * groups that ask for it.
 */
export async function pipeWatched(
  body: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
  signal: AbortSignal,
  idleMs: number,
  onIdle: () => void,
): Promise<void> {
  const reader = body.getReader();
  const writer = writable.getWriter();
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true });
  });
  aborted.catch(() => {});
  try {
    for (;;) {
      const timer = setTimeout(onIdle, idleMs);
      const { done, value } = await Promise.race([reader.read(), aborted]).finally(() =>
        clearTimeout(timer),
      );
      if (done) break;
      await Promise.race([writer.write(value), aborted]);
    }
    await writer.close();
  } catch (error) {
    await Promise.allSettled([reader.cancel(error), writer.abort(error)]);
    throw error;
  }
}
