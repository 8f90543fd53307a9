import { Unpacker, type Packing } from './unpacker.ts';

/** Unpacks a copy of a packed body whose own bytes pass as they came. */
export class PackedCopy {
  readonly #unpacker: Unpacker;
  #unpacked: Promise<void> = Promise.resolve();
  #isLost = false;

  /** `take` gets the unpacked bytes, which hold until it returns. */
  constructor(packings: readonly Packing[], take: (bytes: Uint8Array) => void) {
    this.#unpacker = new Unpacker(packings, take);
  }

  /** Whether the body is not packed as it says, or is a bomb. What was read of it before counts. */
  get isLost(): boolean {
    return this.#isLost;
  }

  push(chunk: Uint8Array): void {
    if (this.#isLost) return;
    // The chunk's buffer is used again for the next one.
    const copy = chunk.slice();
    this.#unpacked = this.#unpacked
      .then(() => this.#unpacker.push(copy))
      .catch(() => {
        this.#isLost = true;
      });
  }

  /** Resolves when all that was pushed is unpacked. */
  caughtUp(): Promise<void> {
    return this.#unpacked;
  }

  close(): void {
    this.#unpacker.close();
  }
}
