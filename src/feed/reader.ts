/** Maximum backlog of a reader, in events and bytes. A reader beyond it has left or cannot follow. */
const WAITING_MAX = 64;
const WAITING_BYTES_MAX = 4 * 1_048_576;

/**
 * One open stream. Events are buffered until the reader takes them, so a slow reader delays no other. A reader that
 * exceeds the buffer is dropped, and reconnects automatically to a new snapshot.
 */
export class Reader {
  /** The group whose leases and waiters it receives, or null for none. */
  readonly group: string | null;
  /** When the stream ends, so that the reader reconnects. */
  readonly endsAt: number;
  readonly body: ReadableStream;
  /** Whether it has received the state that later changes build on. */
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
    // A stream implemented in JavaScript is not reliably notified when its reader leaves.
    const { readable, writable } = new IdentityTransformStream();
    this.body = readable;
    this.#writer = writable.getWriter();
    this.#writer.closed.catch(() => this.end());
  }

  /** Whether an event has been sent that the reader has not taken yet. */
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

  /** Closes the stream after a final event. A stream whose reader is behind is aborted instead. */
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

  /** Drops the reader and aborts its stream. */
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
