import { Unpacker, type Packing } from './unpacker.ts';

/** Decompresses a copy of a body. The body itself passes unchanged. */
export class PackedCopy {
  readonly #unpacker: Unpacker;
  #unpacked: Promise<void> = Promise.resolve();
  #isLost = false;

  /** `take` receives the decompressed bytes. They are valid until it returns. */
  constructor(packings: readonly Packing[], take: (bytes: Uint8Array) => void) {
    this.#unpacker = new Unpacker(packings, take);
  }

  /** Whether the body is not compressed as declared, or is a decompression bomb. Bytes read before that still count. */
  get isLost(): boolean {
    return this.#isLost;
  }

  push(chunk: Uint8Array): void {
    if (this.#isLost) return;
    // The chunk's buffer is reused for the next one.
    const copy = chunk.slice();
    this.#unpacked = this.#unpacked
      .then(() => this.#unpacker.push(copy))
      .catch(() => {
        this.#isLost = true;
      });
  }

  /** Resolves when all pushed bytes are decompressed. */
  caughtUp(): Promise<void> {
    return this.#unpacked;
  }

  close(): void {
    this.#unpacker.close();
  }
}
