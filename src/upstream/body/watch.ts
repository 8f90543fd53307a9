import type { ErrorReply } from '../../contract/reasons.ts';
import { bytesOf } from './chunks.ts';
import type { BodyScan } from './encoded-scan.ts';
import type { ScanState } from './model-scan.ts';
import type { UploadPace } from '../transfer/upload-pace.ts';

const PIECE_BYTES = 64 * 1024;

/** Returns why a body may not be sent, given the state of its scan, or null. */
export type FaultIn = (state: ScanState) => ErrorReply | null;

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

function ignore(): void {
  // There is no listener, or the stream is discarded and a failure does not matter.
}
