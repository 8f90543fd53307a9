/** Maximum hexadecimal digits of a chunk's size, which allow 2^48 bytes. */
const SIZE_DIGITS_MAX = 12;

const [CR, LF] = [13, 10];

/** The next part of a chunked body: the size, the line end after it, the data, or the line end after the data. */
type ChunkPart = 'size' | 'size-lf' | 'data' | 'data-cr' | 'data-lf' | 'end-cr' | 'end-lf';

function digitOf(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = byte | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

/** Finds the end of a chunked body. */
export class ChunkedBody {
  #part: ChunkPart = 'size';
  #digits = 0;
  #left = 0;

  /** Continues at `at`. Returns the end of the body or of `bytes`, or that the body is malformed. */
  read(
    bytes: Buffer,
    at: number,
  ): { readonly at: number; readonly state: 'done' | 'more' | 'bad' } {
    let next = at;
    while (next < bytes.length) {
      if (this.#part === 'data') {
        const taken = Math.min(this.#left, bytes.length - next);
        next += taken;
        this.#left -= taken;
        if (this.#left === 0) this.#part = 'data-cr';
        continue;
      }
      const isEnd = this.#part === 'end-lf';
      if (!this.#step(bytes[next] ?? 0)) return { at: next, state: 'bad' };
      next += 1;
      if (isEnd) return { at: next, state: 'done' };
    }
    return { at: next, state: 'more' };
  }

  /** Reads one byte of the framing. Returns false if another byte was expected. */
  #step(byte: number): boolean {
    switch (this.#part) {
      case 'size':
        return this.#readSize(byte);
      case 'size-lf':
        this.#part = this.#left === 0 ? 'end-cr' : 'data';
        return byte === LF;
      case 'data-cr':
        this.#part = 'data-lf';
        return byte === CR;
      case 'data-lf':
        this.#part = 'size';
        this.#digits = 0;
        return byte === LF;
      case 'end-cr':
        this.#part = 'end-lf';
        return byte === CR;
      case 'end-lf':
      case 'data':
        return byte === LF;
    }
  }

  #readSize(byte: number): boolean {
    const digit = digitOf(byte);
    if (digit < 0) {
      this.#part = 'size-lf';
      return byte === CR && this.#digits > 0;
    }
    this.#left = this.#left * 16 + digit;
    this.#digits += 1;
    return this.#digits <= SIZE_DIGITS_MAX;
  }
}
