import type { BodyBudget, Reservation } from './body-budget.ts';
import { joined } from './bytes.ts';
import { Unpacker, type Packing } from './unpacker.ts';

/** Compressed bodies: which encodings are offered and unpacked, with bounded memory. */

export type { Packing };

const PACKINGS: ReadonlyMap<string, Packing> = new Map([
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['deflate', 'deflate'],
  ['br', 'br'],
  ['zstd', 'zstd'],
]);

/** Values that mean no encoding. Some clients and servers put the charset into this header by mistake. */
const NO_CODINGS: ReadonlySet<string> = new Set(['', 'identity', 'none', 'utf-8', 'utf8']);

/**
 * Memory reserved at first for a decompressed body, as a multiple of the compressed size. JSON shrinks to a quarter or
 * less.
 */
const ROOM_FACTOR = 4;

/** Maximum number of stacked encodings. No known client or provider uses more than two. */
const DEPTH_MAX = 3;

/** Bytes that show whether a body is plain text. */
const HEAD_BYTES = 64;

const PLAIN: readonly Packing[] = [];

/**
 * Reads a `content-encoding` header. Returns the encodings in the order in which they were applied, empty for a plain
 * body. Returns null if one of them cannot be decoded.
 */
export function packingsOf(contentEncoding: string | null): readonly Packing[] | null {
  if (contentEncoding === null || contentEncoding === '') return PLAIN;
  const found: Packing[] = [];
  for (const item of contentEncoding.split(',')) {
    const name = item.trim().toLowerCase();
    if (NO_CODINGS.has(name)) continue;
    const packing = PACKINGS.get(name);
    if (packing === undefined) return null;
    found.push(packing);
  }
  return found.length > DEPTH_MAX ? null : found;
}

export function isPlain(contentEncoding: string | null): boolean {
  return packingsOf(contentEncoding)?.length === 0;
}

/**
 * Decodes a body with these encodings. It reads no further ahead than its own reader. Text that is labelled as
 * compressed by mistake stays as it is.
 */
export function unpacked(
  body: ReadableStream<Uint8Array>,
  packings: readonly Packing[],
): ReadableStream<Uint8Array> {
  if (packings.length === 0) return body;
  const source = body.getReader();
  let room = Promise.withResolvers<void>();
  let unpacker: Unpacker | null = null;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let hasOutput = false;
        const take = (bytes: Uint8Array): Promise<void> => {
          hasOutput = true;
          room = Promise.withResolvers();
          controller.enqueue(bytes);
          return room.promise;
        };
        const target = new Unpacker(packings, take);
        unpacker = target;
        const read: Uint8Array[] = [];
        const decode = async (): Promise<void> => {
          for await (const chunk of chunksOf(source)) {
            if (!hasOutput) read.push(chunk);
            await target.push(chunk);
          }
          await target.end();
        };
        const run = async (): Promise<void> => {
          try {
            await decode();
          } catch (error) {
            const [first] = read;
            if (hasOutput || first === undefined || read.length > 1 || !isText(first)) throw error;
            await take(first);
            for await (const chunk of chunksOf(source)) await take(chunk);
          }
          controller.close();
        };
        run().catch((error: unknown) => {
          target.close();
          source.cancel().catch(ignore);
          controller.error(error);
        });
      },
      pull: () => room.resolve(),
      cancel() {
        room.resolve();
        unpacker?.close();
        source.cancel().catch(ignore);
      },
    },
    { highWaterMark: 0 },
  );
}

/** Unlike the iterator of a stream, it leaves the reader open if its own reader stops. */
async function* chunksOf(source: ReadableStreamDefaultReader<Uint8Array>) {
  for (let next = await source.read(); !next.done; next = await source.read()) yield next.value;
}

/** Whether a body that cannot be decoded begins like JSON or an event. */
function isText(bytes: Uint8Array): boolean {
  const head = new TextDecoder().decode(bytes.subarray(0, HEAD_BYTES));
  return /^\s*(?:[[{:]|data:|event:)/.test(head);
}

interface UnpackedWhole {
  readonly bytes: Uint8Array;
  readonly reservation: Reservation;
}

/**
 * Decompresses a body into memory. null if it is not compressed as declared, is too large, or does not fit into memory.
 */
export async function unpackWhole(
  packed: Uint8Array,
  packings: readonly Packing[],
  budget: BodyBudget,
  bytesMax: number,
): Promise<UnpackedWhole | null> {
  let reservation = budget.tryTake(Math.min(bytesMax, ROOM_FACTOR * packed.length));
  if (reservation === null) return null;
  const chunks: Uint8Array[] = [];
  let length = 0;
  const unpacker = new Unpacker(packings, (bytes) => {
    length += bytes.length;
    while (reservation !== null && length > reservation.bytes) {
      const before: Reservation = reservation;
      reservation = length > bytesMax ? null : budget.tryTake(Math.min(bytesMax, 2 * before.bytes));
      before.release();
    }
    if (reservation === null) unpacker.close();
    else chunks.push(bytes);
  });
  try {
    await unpacker.push(packed);
    await unpacker.end();
  } catch {
    reservation?.release();
    return null;
  } finally {
    unpacker.close();
  }
  if (reservation === null) return null;
  reservation.keep(length);
  return { bytes: joined(chunks, length), reservation };
}

/** Values that nearly all clients send. They are forwarded unchanged. */
const ALL_KNOWN = /^(?:(?:gzip|deflate|br|zstd|identity)(?:, ?|$))+$/;

const NO_WEIGHT = /;\s*q\s*=\s*0(?:\.0*)?\s*(?:;|$)/i;

/**
 * The `accept-encoding` for an upstream. It is what the caller accepts, without encodings that Headgate cannot decode,
 * because it could not read an error response in those. `*` is replaced by the encodings that it represents, and
 * weights stay. `identity` keeps proxies on the way from adding an encoding.
 */
export function offeredEncodings(accepted: string): string {
  const text = accepted.trim();
  if (ALL_KNOWN.test(text)) return text;
  const items = text.split(',').map((item) => item.trim());
  const names = items.map((item) => item.split(';', 1)[0]?.trim().toLowerCase() ?? '');
  const offered = items.flatMap((item, i) => {
    const name = names[i] ?? '';
    if (name === 'identity' || PACKINGS.has(name)) return [item];
    if (name !== '*') return [];
    // It only excludes encodings, so it offers none.
    if (NO_WEIGHT.test(item)) return [item];
    const weight = item.slice(1);
    const others = [...new Set(PACKINGS.values())].filter((other) => !names.includes(other));
    return others.map((other) => `${other}${weight}`);
  });
  return offered.every((item) => NO_WEIGHT.test(item)) ? 'identity' : offered.join(', ');
}

function ignore(): void {
  // The body is discarded, so a failure to cancel it does not matter.
}

/** Decompresses a copy of a body. The body itself passes unchanged. */
export class PackedCopy {
  readonly #unpacker: Unpacker;
  #unpacked: Promise<void> = Promise.resolve();
  #isLost = false;

  /** `take` receives the decompressed bytes. They are valid until it returns. */
  constructor(packings: readonly Packing[], take: (bytes: Uint8Array) => void) {
    this.#unpacker = new Unpacker(packings, take);
  }

  /** Whether the body is not compressed as declared, or is a decompression bomb. Bytes read before that still count. */
  get isLost(): boolean {
    return this.#isLost;
  }

  push(chunk: Uint8Array): void {
    if (this.#isLost) return;
    // The chunk's buffer is reused for the next one.
    const copy = chunk.slice();
    this.#unpacked = this.#unpacked
      .then(() => this.#unpacker.push(copy))
      .catch(() => {
        this.#isLost = true;
      });
  }

  /** Resolves when all pushed bytes are decompressed. */
  caughtUp(): Promise<void> {
    return this.#unpacked;
  }

  close(): void {
    this.#unpacker.close();
  }
}
