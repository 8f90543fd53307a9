import type { ErrorReply } from '../../contract/reasons.ts';
import type { UploadPace } from '../transfer/watched-pipe.ts';
import { bytesOf } from './bytes.ts';
import type { BodyScan } from './encoded-scan.ts';
import type { ScanState } from './model-scan.ts';

/** Writes a request body to the upstream at its pace, and scans what passes after its beginning. */

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

/** Returns why a body may not be sent, given the state of its scan, or null. */
type FaultIn = (state: ScanState) => ErrorReply | null;

export class BodyWatch {
  readonly #scan: BodyScan;
  #faultIn: FaultIn;
  #isOn = true;
  #fault: ErrorReply | null = null;
  #onFault: () => void = ignore;

  constructor(scan: BodyScan, faultIn: FaultIn) {
    this.#scan = scan;
    this.#faultIn = faultIn;
  }

  /** Why the body was aborted. null if no fault was found. */
  get fault(): ErrorReply | null {
    return this.#fault;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** Sets a callback for a fault. It is called before the upstream's connection is aborted. */
  onFault(listener: () => void): void {
    this.#onFault = listener;
  }

  /** Number of scanned bytes that must not be sent yet. */
  get heldBytes(): number {
    return this.#isOn && this.#scan.goesOn ? Math.max(1, this.#scan.undecidedBytes) : 0;
  }

  /** Checks the rest of the body for other faults. */
  lookFor(faultIn: FaultIn): void {
    this.#faultIn = faultIn;
  }

  /** Sends the rest of the body without a scan. */
  stop(): void {
    this.#isOn = false;
    this.#scan.close();
  }

  /**
   * Sends the rest of a body one piece behind the scan, or more while something is undecided. A body with a fault
   * therefore never arrives completely. The `first` pieces were already scanned.
   */
  async pass(
    first: readonly Uint8Array[],
    rest: ReadableStream<Uint8Array>,
    writer: WritableStreamDefaultWriter<Uint8Array>,
    signal: AbortSignal,
    pace: UploadPace | null,
  ): Promise<void> {
    const reader = rest.getReader({ mode: 'byob' });
    const stop = (): void => {
      reader.cancel().catch(ignore);
    };
    signal.addEventListener('abort', stop);
    try {
      const scanned = [...first];
      for (;;) {
        pace?.begin();
        const { done, value } = await reader.read(new Uint8Array(PIECE_BYTES));
        pace?.got(value?.length ?? 0);
        signal.throwIfAborted();
        await this.#take(done ? null : value);
        const heldBytes = done ? 0 : this.heldBytes - value.length;
        while (scanned.length > 0 && bytesOf(scanned.slice(1)) >= heldBytes) {
          await writer.write(scanned.shift());
        }
        if (done) break;
        scanned.push(value);
      }
      await writer.close();
    } catch (error) {
      stop();
      throw error;
    } finally {
      pace?.stop();
      signal.removeEventListener('abort', stop);
    }
  }

  /** Scans a piece. null means the end of the body. */
  async #take(piece: Uint8Array | null): Promise<void> {
    if (!this.#isOn) return;
    if (this.#scan.goesOn) await (piece === null ? this.#scan.end() : this.#scan.push(piece));
    this.#fault = this.#faultIn(this.#scan.state);
    if (this.#fault === null) return;
    this.#onFault();
    throw new Error(this.#fault.message);
  }
}
