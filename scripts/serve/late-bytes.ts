/** Maximum time without a byte, as in nginx by default (`lingering_timeout`). */
const SILENT_MS = 5_000;

/** Maximum total time. A body of 20 MB takes this long at 0.6 Mbit/s. */
const TOTAL_MS = 300_000;

/** Maximum total bytes. Cloudflare accepts request bodies of 100 MB. */
const BYTES_MAX = 128 * 1_048_576;

/**
 * Bytes that a client sends after its response is complete. They are read and discarded, because the kernel resets a
 * connection that is closed with unread bytes, and a reset can delete a response that the client has not read yet. Many
 * clients read nothing before they have sent their whole request.
 *
 * The bounds are generous because such a connection uses no memory and is closed when another client needs its place.
 */
export class LateBytes {
  readonly #since = performance.now();
  #lastAt = this.#since;
  #bytes = 0;

  note(bytes: number): void {
    this.#lastAt = performance.now();
    this.#bytes += bytes;
  }

  /** Whether the client has been silent for too long, or has sent too much or for too long. */
  isOver(now: number): boolean {
    const isSilent = now - this.#lastAt >= SILENT_MS;
    return isSilent || now - this.#since >= TOTAL_MS || this.#bytes > BYTES_MAX;
  }
}
