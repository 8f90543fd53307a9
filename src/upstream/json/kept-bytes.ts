const FIRST_BYTES = 64;

/** Copies the bytes of chunks, up to a maximum. */
export class KeptBytes {
  readonly #bytesMax: number;
  #bytes = new Uint8Array(FIRST_BYTES);
  #length = 0;

  /** Must be at least one. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The bytes added since the last `clear`. Valid until the next `clear`. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
  }

  addByte(byte: number): void {
    this.#bytes[this.#length] = byte;
    this.#length += 1;
  }

  /** Adds a part of a chunk. Bytes beyond the maximum are dropped. */
  add(chunk: Uint8Array, from: number, to: number): void {
    const length = Math.min(to - from, this.#bytesMax - this.#length);
    if (length <= 0) return;
    const needed = this.#length + length;
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.min(2 * needed, this.#bytesMax));
      larger.set(this.bytes);
      this.#bytes = larger;
    }
    this.#bytes.set(chunk.subarray(from, from + length), this.#length);
    this.#length = needed;
  }
}
