import type { UploadPace } from '../transfer/upload-pace.ts';

const PIECE_BYTES = 64 * 1024;

/** A body that is being sent from memory. */
export interface Pump {
  readonly readable: ReadableStream<Uint8Array>;
  stop(): void;
}

/**
 * Writes the part of a body that is in memory, and returns the rest, which is piped natively. Returns null if there is
 * no rest and the writer is closed. Each write ends when the runtime has handed it on.
 */
export type WriteBody = (
  writer: WritableStreamDefaultWriter<Uint8Array>,
  signal: AbortSignal,
) => Promise<ReadableStream<Uint8Array> | null>;

/**
 * Opens a stream that sends a body, with its length if that is known. `onEnd` is called once, when the runtime no
 * longer holds any of it: it was sent completely, its reader stopped, or it was stopped.
 */
export function pump(
  length: number | null,
  write: WriteBody,
  onEnd: (isWhole: boolean) => void,
): Pump {
  const { readable, writable } =
    length === null ? new IdentityTransformStream() : new FixedLengthStream(length);
  const stop = new AbortController();
  run(writable, write, stop.signal).then(onEnd, () => onEnd(false));
  return { readable, stop: () => stop.abort() };
}

/** Writes the rest of a body, and measures the wait for each piece. */
export async function writePaced(
  source: ReadableStream<Uint8Array>,
  writer: WritableStreamDefaultWriter<Uint8Array>,
  signal: AbortSignal,
  pace: UploadPace,
): Promise<void> {
  const reader = source.getReader({ mode: 'byob' });
  const stop = (): void => {
    reader.cancel().catch(ignore);
  };
  signal.addEventListener('abort', stop);
  // A write ends when the bytes were read, so one buffer is enough for all of them.
  let buffer = new ArrayBuffer(PIECE_BYTES);
  try {
    for (;;) {
      pace.begin();
      const { done, value } = await reader.read(new Uint8Array(buffer));
      pace.got(value?.length ?? 0);
      signal.throwIfAborted();
      if (done) break;
      await writer.write(value);
      buffer = value.buffer;
    }
    await writer.close();
  } catch (error) {
    stop();
    throw error;
  } finally {
    pace.stop();
    signal.removeEventListener('abort', stop);
  }
}

async function run(
  writable: WritableStream<Uint8Array>,
  write: WriteBody,
  signal: AbortSignal,
): Promise<boolean> {
  const writer = writable.getWriter();
  const stop = (): void => {
    writer.abort(signal.reason).catch(ignore);
  };
  signal.addEventListener('abort', stop);
  try {
    const rest = await write(writer, signal);
    if (rest === null) return true;
    signal.removeEventListener('abort', stop);
    writer.releaseLock();
    await rest.pipeTo(writable, { signal });
    return true;
  } catch (error) {
    // The upstream stopped reading, the caller left, or the call ended. `fetch` reports which.
    writer.abort(error).catch(ignore);
    return false;
  }
}

function ignore(): void {
  // The stream is discarded, so a failure does not matter.
}
