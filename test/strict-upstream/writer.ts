import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Transform } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import {
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createGzip,
  createZstdCompress,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import type { StrictFrame, StrictAnswer } from './answer.ts';
import { content } from './answer.ts';
import type { StrictBehaviour } from './settings.ts';

/** Bytes that the kernel takes at once, beside what it may still hold. */
const AT_ONCE_BYTES = 16_384;

/** Facts of the call that the writer needs besides its answer. */
export interface WriteContext {
  readonly behaviour: StrictBehaviour;
  /** Aborted when the connection is gone: every wait ends there. */
  readonly gone: AbortSignal;
  /** Resolves when somebody resumes this scope's silent streams. */
  readonly resumed: () => Promise<void>;
  /** Called before the upstream itself cuts the connection. */
  readonly onBreak: () => void;
  /** Called before the last bytes go out, where the kernel takes them at once. */
  readonly onLast: () => void;
  /** Called before so many tokens of the answer go out. */
  readonly onTokens: (tokens: number) => void;
}

/** Waits, unless the connection goes first. */
export async function pause(ms: number, gone: AbortSignal): Promise<void> {
  if (ms > 0) await delay(ms, undefined, { signal: gone });
}

/** Is silent for as long as the behaviour asks, unless the connection goes first. */
export async function silence({
  behaviour,
  gone,
  resumed,
}: Pick<WriteContext, 'behaviour' | 'gone' | 'resumed'>): Promise<void> {
  if (behaviour.silentMs !== null) {
    await pause(behaviour.silentMs, gone);
    return;
  }
  gone.throwIfAborted();
  const left = once(gone, 'abort');
  await Promise.race([resumed(), left]);
  gone.throwIfAborted();
}

/** The content encoding of answers; null: none. */
export function encodingOf({ gzip, brotli, zstd }: StrictBehaviour): 'gzip' | 'br' | 'zstd' | null {
  return gzip ? 'gzip' : brotli ? 'br' : zstd ? 'zstd' : null;
}

/** Compresses a whole body with the coding of the behaviour. */
export function packWhole(plain: Buffer, behaviour: StrictBehaviour): Buffer {
  switch (encodingOf(behaviour)) {
    case 'gzip':
      return gzipSync(plain);
    case 'br':
      return brotliCompressSync(plain);
    case 'zstd':
      return zstdCompressSync(plain);
    case null:
      return plain;
  }
}

function compressorOf(behaviour: StrictBehaviour): Transform | null {
  switch (encodingOf(behaviour)) {
    case 'gzip':
      return createGzip({ flush: constants.Z_SYNC_FLUSH });
    case 'br':
      return createBrotliCompress({ flush: constants.BROTLI_OPERATION_FLUSH });
    case 'zstd':
      return createZstdCompress({ flush: constants.ZSTD_e_flush });
    case null:
      return null;
  }
}

/** Writes to the response with its backpressure, or through a compressor that flushes every chunk. */
export class Sink {
  readonly #res: ServerResponse;
  readonly #compressor: Transform | null;

  constructor(res: ServerResponse, behaviour: StrictBehaviour) {
    this.#res = res;
    this.#compressor = compressorOf(behaviour);
    this.#compressor?.on('data', (data: Buffer) => res.write(data));
  }

  async write(data: string | Uint8Array, gone: AbortSignal): Promise<void> {
    const compressor = this.#compressor;
    if (compressor !== null) {
      await new Promise<void>((resolve, reject) => {
        compressor.write(data, (error) => (error ? reject(error) : resolve()));
      });
    } else if (this.#res.write(data)) return;
    if (this.#res.writableNeedDrain) await once(this.#res, 'drain', { signal: gone });
  }

  async end(): Promise<void> {
    if (this.#compressor !== null) {
      this.#compressor.end();
      await once(this.#compressor, 'end');
    }
    this.#res.end();
  }
}

const byteLength = (frame: StrictFrame): number =>
  typeof frame.data === 'string' ? Buffer.byteLength(frame.data) : frame.data.byteLength;

/** With a Content-Length a compressed body must be known whole before its first byte. */
function compressedWhole(answer: StrictAnswer, behaviour: StrictBehaviour): StrictAnswer {
  const frames = [...answer.frames()];
  const plain = Buffer.concat(frames.map(({ data }) => Buffer.from(data as string)));
  const tokens = frames.reduce((sum, frame) => sum + frame.tokens, 0);
  const data = packWhole(plain, behaviour);
  return { ...answer, whole: true, frames: () => [content(data, tokens)] };
}

function contentLengthOf(answer: StrictAnswer): number {
  let total = 0;
  for (const frame of answer.frames()) total += byteLength(frame);
  return total;
}

/** Writes an answer: status, headers, and the body at the pace that the behaviour asks for. */
export async function writeAnswer(
  res: ServerResponse,
  given: StrictAnswer,
  context: WriteContext,
): Promise<void> {
  const { behaviour, gone } = context;
  const encoding = encodingOf(behaviour);
  const sized = behaviour.contentLength ?? (given.whole && encoding === null);
  const early = sized && encoding !== null;
  const answer = early ? compressedWhole(given, behaviour) : given;
  res.setHeader('content-type', answer.contentType);
  if (encoding !== null) res.setHeader('content-encoding', encoding);
  if (sized) res.setHeader('content-length', contentLengthOf(answer));
  if (res.req.method === 'HEAD') {
    res.end();
    return;
  }
  const sink = new Sink(
    res,
    early ? { ...behaviour, gzip: false, brotli: false, zstd: false } : behaviour,
  );
  if (!answer.whole || behaviour.silentAfterChunks === 0 || behaviour.breakAfterChunks === 0) {
    res.flushHeaders();
  }
  let sent = 0;
  const atMark = async (): Promise<boolean> => {
    if (behaviour.silentAfterChunks === sent) await silence(context);
    if (behaviour.errorAfterChunks === sent && answer.failure !== undefined) {
      await sink.write(answer.failure(sent), gone);
      context.onBreak();
      await sink.end();
      return false;
    }
    if (behaviour.breakAfterChunks !== sent) return true;
    context.onBreak();
    res.socket?.resetAndDestroy();
    return false;
  };
  if (!behaviour.atContent && !(await atMark())) return;
  const marks = [
    behaviour.silentAfterChunks,
    behaviour.errorAfterChunks,
    behaviour.breakAfterChunks,
  ];
  // The last byte of an answer with a Content-Length is its end for who reads it.
  const endsWithFrame = sized && answer.whole && !marks.includes(1);
  for (const frame of answer.frames()) {
    gone.throwIfAborted();
    if (behaviour.atContent && frame.content && sent === 0 && !(await atMark())) return;
    context.onTokens(frame.tokens);
    if (endsWithFrame && byteLength(frame) <= AT_ONCE_BYTES) context.onLast();
    await sink.write(frame.data, gone);
    if (!frame.content) continue;
    sent += 1;
    if (!endsWithFrame) await pause(behaviour.chunkDelayMs, gone);
    if (!(await atMark())) return;
  }
  if (!sized) context.onLast();
  await sink.end();
}
