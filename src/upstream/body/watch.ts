import type { ErrorReply } from '../../contract/reasons.ts';
import { bytesOf } from './chunks.ts';
import type { BodyScan } from './encoded-scan.ts';
import type { ScanState } from './model-scan.ts';
import type { UploadPace } from '../transfer/upload-pace.ts';

const PIECE_BYTES = 64 * 1024;

/** Why a body may not go out, by the state of its scan; null: nothing is against it yet. */
export type FaultIn = (state: ScanState) => ErrorReply | null;

/** The scan of a body that goes on while the body is on its way out. */
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

  /** Why the body was not let through to its end; null: nothing is known against it. */
  get fault(): ErrorReply | null {
    return this.#fault;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** Calls back once a fault is found, before the upstream hears of it. */
  onFault(listener: () => void): void {
    this.#onFault = listener;
  }

  /** Bytes that were scanned and must not go out yet. */
  get heldBytes(): number {
    return this.#isOn && this.#scan.goesOn ? Math.max(1, this.#scan.undecidedBytes) : 0;
  }

  /** Looks for other faults in what is left of the body. */
  lookFor(faultIn: FaultIn): void {
    this.#faultIn = faultIn;
  }

  /** Lets what is left of the body pass unread. */
  stop(): void {
    this.#isOn = false;
    this.#scan.close();
  }

  /**
   * Passes on what is left of a body, one piece behind what was scanned, or more while something is
   * undecided: a body with a fault never arrives whole. The `first` pieces were scanned before.
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

  /** Scans a piece; null: the body has ended. */
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
  // Nobody listens, or the body is given up and how that went concerns nobody.
}
