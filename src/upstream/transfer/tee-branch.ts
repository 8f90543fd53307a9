/**
 * Bytes of a read, at first and at most. The runtime takes as much again for each read, until the next collection, so
 * a read is no larger than it must be.
 */
const SMALL_BYTES = 1_024;
const LARGE_BYTES = 65_536;

/** Factor between one size of a read and the next. */
const STEP = 4;

/**
 * One branch of a tee, read a piece at a time. The runtime keeps what passes by on the other branch until it is
 * read here; a read that finds something ends at once, and one that finds nothing waits for the next bytes.
 */
export class TeeBranch {
  readonly #reader: ReadableStreamBYOBReader;
  #buffer = new ArrayBuffer(SMALL_BYTES);
  #bytes: number;
  #isReading = false;
  #hasMore = false;
  #hasEnded = false;

  /** @param passed bytes before the branch that count as read */
  constructor(branch: ReadableStream<Uint8Array>, passed = 0) {
    this.#bytes = passed;
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

  /**
   * Reads the next piece, which may not be kept; null: there is none, for the body has ended or is broken. `known`:
   * so many bytes are there at least.
   */
  async read(known = 0): Promise<Uint8Array | null> {
    const bytes = Math.min(known + SMALL_BYTES, LARGE_BYTES);
    if (bytes > this.#buffer.byteLength) this.#buffer = new ArrayBuffer(bytes);
    this.#isReading = true;
    try {
      const { done, value } = await this.#reader.read(new Uint8Array(this.#buffer));
      if (done) return this.#end();
      this.#bytes += value.length;
      const isFirst = !this.#hasMore;
      this.#hasMore = value.length === value.buffer.byteLength;
      this.#buffer = fitted(value, isFirst);
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

/**
 * The buffer for the read after one that gave `value`: the same one, or another that fits better what is there. Where
 * that was not the first of what there was, it says nothing of what one read should take.
 */
function fitted({ length, buffer }: Uint8Array<ArrayBuffer>, isFirst: boolean): ArrayBuffer {
  const { byteLength } = buffer;
  let bytes = byteLength;
  if (length === byteLength) bytes = Math.min(byteLength * STEP, LARGE_BYTES);
  else if (isFirst && length < byteLength / (2 * STEP)) {
    bytes = Math.max(byteLength / STEP, SMALL_BYTES);
  }
  return bytes === byteLength ? buffer : new ArrayBuffer(bytes);
}
