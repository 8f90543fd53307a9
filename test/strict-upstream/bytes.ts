import { createHash } from 'node:crypto';
import type { StrictAnswer } from './answer.ts';
import { content } from './answer.ts';

const BLOCK_BYTES = 65_536;
const WRITTEN_PIECE_BYTES = 61;

/** Seeded bytes in blocks: a xorshift generator, the same for every run. */
function* seededBlocks(length: number): Generator<Uint8Array> {
  let state = 0x9e3779b9;
  for (let left = length; left > 0; left -= BLOCK_BYTES) {
    const words = new Uint32Array(BLOCK_BYTES / 4);
    for (let i = 0; i < words.length; i += 1) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      words[i] = state;
    }
    yield new Uint8Array(words.buffer, 0, Math.min(left, BLOCK_BYTES));
  }
}

const hashes = new Map<number, string>();

/** SHA-256 of the first `length` seeded bytes, in hex. */
export function seededHash(length: number): string {
  const known = hashes.get(length);
  if (known !== undefined) return known;
  const hash = createHash('sha256');
  for (const block of seededBlocks(length)) hash.update(block);
  const hex = hash.digest('hex');
  hashes.set(length, hex);
  return hex;
}

/** A body of seeded bytes. */
export function bytesAnswer(length: number, contentType: string): StrictAnswer {
  return {
    contentType,
    whole: false,
    *frames() {
      for (const block of seededBlocks(length)) yield content(block);
    },
  };
}

/** A body that a test wrote, in pieces of equal size. */
export function writtenAnswer(body: string, contentType: string): StrictAnswer {
  const bytes = Buffer.from(body);
  return {
    contentType,
    whole: false,
    *frames() {
      for (let at = 0; at < bytes.length; at += WRITTEN_PIECE_BYTES) {
        yield content(bytes.subarray(at, at + WRITTEN_PIECE_BYTES));
      }
    },
  };
}
