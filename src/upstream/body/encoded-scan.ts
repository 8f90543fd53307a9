import { SCAN_BYTES_MAX } from './body-budget.ts';
import { packingsOf, type Packing } from './packing.ts';
import { UnpackError, Unpacker } from './unpacker.ts';
import { MORE, unreadable } from './model-scan.ts';
import type { ModelScan, ScanState } from './model-scan.ts';

export interface BodyScan {
  readonly state: ScanState;
  /** Whether positions in the state refer to the body as it was received. */
  readonly isPlain: boolean;
  /** Whether further bytes may change the state. */
  readonly goesOn: boolean;
  /** Number of trailing bytes that belong to something undecided. */
  readonly undecidedBytes: number;
  push(bytes: Uint8Array): Promise<void>;
  end(): Promise<ScanState>;
  /** Ends the scan early. Nothing may be pushed afterwards. */
  close(): void;
}

/** Wraps a scan so that it receives the decoded body. null if the `content-encoding` cannot be decoded. */
export function scanEncoded(scan: ModelScan, contentEncoding: string | null): BodyScan | null {
  const packings = packingsOf(contentEncoding);
  if (packings === null) return null;
  return packings.length === 0 ? new PlainScan(scan) : new UnpackingScan(scan, packings);
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
    // There is nothing to release.
  }
}

class UnpackingScan implements BodyScan {
  readonly isPlain = false;
  /** Their position in the compressed bytes is unknown. */
  readonly undecidedBytes = 0;
  readonly #scan: ModelScan;
  readonly #unpacker: Unpacker;
  #scanned = 0;
  #state: ScanState = MORE;
  /** Whether decompression failed or was stopped. */
  #isLost = false;

  constructor(scan: ModelScan, packings: readonly Packing[]) {
    this.#scan = scan;
    this.#unpacker = new Unpacker(packings, (bytes) => this.#take(bytes));
  }

  get goesOn(): boolean {
    return !this.#isLost && this.#scan.goesOn;
  }

  get state(): ScanState {
    return this.#state;
  }

  async push(bytes: Uint8Array): Promise<void> {
    await this.#unpack(this.#unpacker.push(bytes));
  }

  async end(): Promise<ScanState> {
    await this.#unpack(this.#unpacker.end());
    if (this.goesOn) this.#state = this.#scan.end();
    return this.#state;
  }

  close(): void {
    this.#unpacker.close();
  }

  async #unpack(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      const why = error instanceof UnpackError ? error.message : 'it could not be decompressed';
      if (this.goesOn) this.#lose(why);
    }
  }

  #take(bytes: Uint8Array): void {
    if (!this.goesOn) {
      this.#unpacker.close();
      return;
    }
    this.#scanned += bytes.length;
    this.#state = this.#scan.push(bytes);
    if (this.goesOn && this.#scanned >= SCAN_BYTES_MAX) {
      this.#lose(`it has more than ${SCAN_BYTES_MAX} bytes after decompression`);
    }
  }

  #lose(why: string): void {
    this.#state = unreadable(why);
    this.#isLost = true;
    this.#unpacker.close();
  }
}
