/** Maximum by which a reader may be behind: one that is further has left, or cannot follow. */
const WAITING_MAX = 64;
const WAITING_BYTES_MAX = 4 * 1_048_576;

/**
 * One open stream. What is sent waits here until the reader takes it, so that a slow one holds up nobody:
 * it is dropped when too much waits, and comes back by itself to a fresh picture.
 */
export class Reader {
  /** The group whose leases and waiters it wants to see; null: none. */
  readonly group: string | null;
  /** When it is sent away, to come back by itself. */
  readonly endsAt: number;
  readonly body: ReadableStream;
  /** It has been told everything that a change may change. */
  isWelcomed = false;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #onEnd: (reader: Reader) => void;
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  #hasEnded = false;

  constructor(group: string | null, endsAt: number, onEnd: (reader: Reader) => void) {
    this.group = group;
    this.endsAt = endsAt;
    this.#onEnd = onEnd;
    // Not a stream of our own making: of those the runtime does not always tell that the reader left.
    const { readable, writable } = new IdentityTransformStream();
    this.body = readable;
    this.#writer = writable.getWriter();
    this.#writer.closed.catch(() => this.end());
  }

  /** Something was sent that it has not taken yet. */
  get isBehind(): boolean {
    return this.#isWriting;
  }

  send(bytes: Uint8Array): void {
    if (this.#hasEnded) return;
    if (this.#waiting.length >= WAITING_MAX || this.#waitingBytes > WAITING_BYTES_MAX) {
      this.end();
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.byteLength;
    if (!this.#isWriting) this.#write().catch(() => this.end());
  }

  /** Ends the stream in good order with a last word, unless the reader is behind: then it breaks off. */
  endWell(last: Uint8Array): void {
    if (this.#hasEnded || this.isBehind) {
      this.end();
      return;
    }
    this.#hasEnded = true;
    this.#writer
      .write(last)
      .then(() => this.#writer.close())
      .catch(() => {});
    this.#onEnd(this);
  }

  /** Lets go of the reader; its stream breaks off. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#writer.abort(new Error('the stream has ended')).catch(() => {});
    this.#onEnd(this);
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.#waitingBytes -= next.byteLength;
      await this.#writer.write(next);
    }
    this.#isWriting = false;
  }
}
