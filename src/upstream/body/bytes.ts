/** Bytes of bodies: joined, kept while they grow, and read up to a limit. */

export function bytesOf(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((sum, chunk) => sum + chunk.length, 0);
}

export function joined(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const [first] = chunks;
  if (chunks.length === 1 && first !== undefined) return first;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

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

/** Reads the whole body of a response. Returns null if it is longer than `bytesMax`. The rest is then not read. */
export async function bytesWithin(
  { body }: Response,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  if (body === null) return new Uint8Array();
  const reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> = body.getReader();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let left = bytesMax;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(pieces).arrayBuffer());
    left -= value.length;
    if (left < 0) {
      await reader.cancel();
      return null;
    }
    pieces.push(value);
  }
}

/** As `bytesWithin`, decoded as UTF-8. */
export async function textWithin(answer: Response, bytesMax: number): Promise<string | null> {
  const bytes = await bytesWithin(answer, bytesMax);
  return bytes === null ? null : new TextDecoder().decode(bytes);
}

/** The body of a request to one of our routes, or why it could not be read. */
type OwnBody =
  | { readonly kind: 'read'; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'too long' }
  /** The caller disconnected, or sent less than it announced. */
  | { readonly kind: 'broken' };

/** Reads the body of a request to one of our routes. A caller that disconnects half-way is not an error of Headgate. */
export async function readOwnBody({ body }: Request, bytesMax: number): Promise<OwnBody> {
  let bytes: Uint8Array<ArrayBuffer> | null;
  try {
    bytes = await bytesWithin(new Response(body), bytesMax);
  } catch {
    return { kind: 'broken' };
  }
  return bytes === null ? { kind: 'too long' } : { kind: 'read', bytes };
}

export const BODY_BROKEN =
  'The request body ended before its announced length. Send the whole request again.';
