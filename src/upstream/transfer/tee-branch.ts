/** Bytes of a read. A branch that has more to give is read in large ones. */
const SMALL_BYTES = 4_096;
const LARGE_BYTES = 65_536;

/**
 * One branch of a tee, read a piece at a time. The runtime keeps what passes by on the other branch until it is
 * read here; a read that finds something ends at once, and one that finds nothing waits for the next bytes.
 */
export class TeeBranch {
  readonly #reader: ReadableStreamBYOBReader;
  #buffer = new ArrayBuffer(SMALL_BYTES);
  #bytes = 0;
  #isReading = false;
  #hasMore = false;
  #hasEnded = false;

  constructor(branch: ReadableStream<Uint8Array>) {
    this.#reader = branch.getReader({ mode: 'byob' });
  }

  /** Bytes that were read so far. */
  get bytes(): number {
    return this.#bytes;
  }

  get isReading(): boolean {
    return this.#isReading;
  }

  /** Whether there may be more of what has passed by: the last read was filled. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  /** Whether the body ended, or broke. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Reads the next piece, which may not be kept; null: there is none, for the body has ended or is broken. */
  async read(): Promise<Uint8Array | null> {
    this.#isReading = true;
    try {
      const { done, value } = await this.#reader.read(new Uint8Array(this.#buffer));
      if (done) return this.#end();
      this.#bytes += value.length;
      this.#hasMore = value.length === value.buffer.byteLength;
      const nextBytes = this.#hasMore ? LARGE_BYTES : SMALL_BYTES;
      this.#buffer =
        value.buffer.byteLength === nextBytes ? value.buffer : new ArrayBuffer(nextBytes);
      return value;
    } catch {
      return this.#end();
    } finally {
      this.#isReading = false;
    }
  }

  #end(): null {
    this.#hasEnded = true;
    this.#hasMore = false;
    return null;
  }
}
