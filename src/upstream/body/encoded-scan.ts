import { whenQuiet } from '../../runtime/when-quiet.ts';
import { SCAN_BYTES_MAX } from './body-budget.ts';
import { packingOf } from './packing.ts';
import { MORE, unreadable } from './model-scan.ts';
import type { ModelScan, ScanState } from './model-scan.ts';

/** Scans a body that may be compressed. */
export interface BodyScan {
  /** The state after what was pushed last. */
  readonly state: ScanState;
  /** Whether the positions that the state names are those of the body as it came. */
  readonly isPlain: boolean;
  /** Whether what follows may change its state. */
  readonly goesOn: boolean;
  /** Bytes at the end of what was pushed that stand in something not decided yet. */
  readonly undecidedBytes: number;
  push(bytes: Uint8Array): Promise<void>;
  end(): Promise<ScanState>;
  /** Ends the scan early. Nothing may be pushed afterwards. */
  close(): void;
}

/** Bytes that are unpacked at a time: one compressed byte can stand for a thousand. */
const BITE_BYTES = 4_096;

/**
 * Wraps a scan so that it sees what a `content-encoding` stands for. Null: an encoding that the
 * runtime cannot undo.
 */
export function scanEncoded(scan: ModelScan, contentEncoding: string | null): BodyScan | null {
  const packing = packingOf(contentEncoding);
  if (packing === 'plain') return new PlainScan(scan);
  return packing === null ? null : new UnpackingScan(scan, packing);
}

class PlainScan implements BodyScan {
  readonly isPlain = true;
  readonly #scan: ModelScan;
  #state: ScanState = MORE;

  constructor(scan: ModelScan) {
    this.#scan = scan;
  }

  get goesOn(): boolean {
    return this.#scan.goesOn;
  }

  get undecidedBytes(): number {
    return this.#scan.undecidedBytes;
  }

  get state(): ScanState {
    return this.#state;
  }

  push(bytes: Uint8Array): Promise<void> {
    this.#state = this.#scan.push(bytes);
    return Promise.resolve();
  }

  end(): Promise<ScanState> {
    this.#state = this.#scan.end();
    return Promise.resolve(this.#state);
  }

  close(): void {
    // There is nothing to let go of.
  }
}

class UnpackingScan implements BodyScan {
  readonly isPlain = false;
  /** Nobody knows which of the packed bytes they are. */
  readonly undecidedBytes = 0;
  readonly #scan: ModelScan;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #unpacked: Promise<void>;
  #state: ScanState = MORE;
  /** It cannot be unpacked any further. */
  #isLost = false;

  constructor(scan: ModelScan, format: 'gzip' | 'deflate') {
    const stream = new DecompressionStream(format);
    this.#scan = scan;
    this.#writer = stream.writable.getWriter();
    this.#reader = stream.readable.getReader();
    this.#unpacked = this.#readAll();
  }

  get goesOn(): boolean {
    return !this.#isLost && this.#scan.goesOn;
  }

  get state(): ScanState {
    return this.#state;
  }

  async push(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length && this.goesOn; at += BITE_BYTES) {
      try {
        // The stream keeps what it is given, and the buffer is still to be filled on: hence a copy.
        await this.#writer.write(bytes.slice(at, at + BITE_BYTES));
        // It takes all that is written at once, whatever it holds unread.
        await whenQuiet();
      } catch {
        await this.#unpacked;
      }
    }
  }

  async end(): Promise<ScanState> {
    try {
      await this.#writer.close();
    } catch {
      // The reader met the same error, and said so in the state.
    }
    await this.#unpacked;
    return this.#state;
  }

  close(): void {
    this.#writer.abort().catch(ignore);
    this.#reader.cancel().catch(ignore);
  }

  async #readAll(): Promise<void> {
    let scanned = 0;
    try {
      for (;;) {
        const { done, value } = await this.#reader.read();
        if (done) {
          if (this.goesOn) this.#state = this.#scan.end();
          return;
        }
        if (!this.goesOn) continue;
        scanned += value.length;
        this.#state = this.#scan.push(value);
        if (this.goesOn && scanned >= SCAN_BYTES_MAX) {
          this.#lose(`the body has more than ${SCAN_BYTES_MAX} bytes once unpacked`);
        }
      }
    } catch {
      if (this.goesOn) this.#lose('the body could not be unpacked');
    }
  }

  #lose(why: string): void {
    this.#state = unreadable(why);
    this.#isLost = true;
  }
}

function ignore(): void {
  // The stream is given up; how that went concerns nobody.
}
