/**
 * Minimum and maximum bytes of a read. The runtime allocates as much again for each read until the next garbage
 * collection, so a read is no larger than necessary.
 */
const SMALL_BYTES = 1_024;
const LARGE_BYTES = 65_536;

/** Factor between two consecutive sizes of a read. */
const STEP = 4;

/**
 * One branch of a tee, read in pieces. The runtime buffers what passes on the other branch until it is read here. A
 * read returns immediately if bytes are available, and otherwise waits for the next ones.
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

  get bytes(): number {
    return this.#bytes;
  }

  get isReading(): boolean {
    return this.#isReading;
  }

  /** Whether more buffered bytes may be available, because the last read was filled. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  /** Whether the body has ended or broken. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /**
   * Reads the next piece, which the caller must not keep. Returns null if the body has ended or broken. At least
   * `known` bytes are available.
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
 * The buffer for the read after one that returned `value`: the same one, or one of a better size. Only the first read
 * of the available bytes shows that a smaller buffer would do.
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
