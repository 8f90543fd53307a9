import { whenQuiet } from '../../runtime/async.ts';

/** A content encoding that Headgate can decode. */
export type Packing = 'gzip' | 'deflate' | 'br' | 'zstd';

/**
 * Every body may decompress to this size. Larger results are limited to the best ratio of gzip, 1,032 to 1. Brotli and
 * zstd reach a million to one, but only in decompression bombs.
 */
const FREE_BYTES = 4 * 1024 * 1024;
const RATIO_MAX = 1_100;

/**
 * Number of frames that a zstd body may have. More are allowed if they contain 4 KiB each on average. Every frame costs
 * as much as decoding some 100 KiB, even an empty one.
 */
const FREE_FRAMES = 1_000;
const FRAME_BYTES_MIN = 4 * 1024;

const CHUNK_BYTES = 16 * 1024;

/** `ZSTD_d_windowLogMax`, and the window that every HTTP decoder must support: 8 MiB (RFC 9659). */
const ZSTD_WINDOW_LOG_MAX = 100;
const ZSTD_WINDOW_LOG = 23;

/** The part of a `node:zlib` decoder that is used here. */
interface Decoder {
  readonly bytesWritten: number;
  readonly readableLength: number;
  readonly destroyed: boolean;
  on(event: 'data', listener: (bytes: Uint8Array) => void): void;
  on(event: 'error' | 'end' | 'close', listener: () => void): void;
  write(bytes: Uint8Array, written: () => void): void;
  end(): void;
  pause(): void;
  resume(): void;
  destroy(): void;
}

interface DecoderOptions {
  readonly chunkSize: number;
  readonly params?: Readonly<Record<number, number>>;
}

type Create = (options: DecoderOptions) => Decoder;

interface ZlibModule {
  readonly createGunzip: Create;
  readonly createInflate: Create;
  readonly createInflateRaw: Create;
  readonly createBrotliDecompress: Create;
  readonly createZstdDecompress: Create;
}

/** Loads the module with the first compressed body, because most isolates never need it. */
function zlib(): ZlibModule {
  const { process } = globalThis as unknown as {
    readonly process: { getBuiltinModule(name: 'node:zlib'): ZlibModule };
  };
  return process.getBuiltinModule('node:zlib');
}

function decoderFor(packing: Packing, firstByte: number): Decoder {
  const chunkSize = CHUNK_BYTES;
  switch (packing) {
    case 'gzip':
      return zlib().createGunzip({ chunkSize });
    case 'br':
      return zlib().createBrotliDecompress({ chunkSize });
    case 'zstd': {
      const params = { [ZSTD_WINDOW_LOG_MAX]: ZSTD_WINDOW_LOG };
      return zlib().createZstdDecompress({ chunkSize, params });
    }
    case 'deflate':
      // Some servers omit the zlib header. Its first byte always ends in 8.
      return (firstByte & 0x0f) === 8
        ? zlib().createInflate({ chunkSize })
        : zlib().createInflateRaw({ chunkSize });
  }
}

/** Receives decoded bytes. If it returns a promise, the decoder pauses until that resolves. */
type TakeBytes = (bytes: Uint8Array) => Promise<void> | void;

/** Decodes one body piece by piece, within limits. Its memory does not grow with the body. */
export class Unpacker {
  readonly #input: Input = { bytes: 0 };
  readonly #first: DecoderStage;
  readonly #stages: readonly DecoderStage[];

  /** `packings` are in the order in which they were applied. At least one. */
  constructor(packings: readonly Packing[], take: TakeBytes) {
    const stages: DecoderStage[] = [];
    let next = take;
    for (const packing of packings) {
      const stage = new DecoderStage(packing, next, this.#input);
      stages.unshift(stage);
      next = (bytes) => stage.push(bytes);
    }
    const [first] = stages;
    if (first === undefined) throw new Error('the body is plain');
    this.#first = first;
    this.#stages = stages;
  }

  /** Decodes the next bytes, which must not change until it resolves. Rejects if they are invalid. */
  push(bytes: Uint8Array): Promise<void> {
    this.#input.bytes += bytes.length;
    return this.#first.push(bytes);
  }

  /** Resolves when all bytes are decoded. Rejects if the body is incomplete. */
  async end(): Promise<void> {
    for (const stage of this.#stages) await stage.end();
  }

  close(): void {
    for (const stage of this.#stages) stage.close();
  }
}

/**
 * The compressed body as it was received. The ratio is measured against it, because a decompression bomb may have
 * several layers, each with a harmless ratio.
 */
interface Input {
  bytes: number;
}

const TOO_MUCH = 'bytes follow the end of the compressed data';

class DecoderStage {
  readonly #packing: Packing;
  readonly #take: TakeBytes;
  readonly #input: Input;
  /** null until the first byte. */
  #decoder: Decoder | null = null;
  #bytesOut = 0;
  #frames = 1;
  #hasEnded = false;
  #over = Promise.withResolvers<void>();
  #fault: Error | null = null;

  constructor(packing: Packing, take: TakeBytes, input: Input) {
    this.#packing = packing;
    this.#take = take;
    this.#input = input;
  }

  async push(bytes: Uint8Array): Promise<void> {
    this.#throwFault();
    let rest = bytes;
    while (rest.length > 0) {
      const decoder = this.#decoder ?? this.#start(rest[0] ?? 0);
      if (this.#hasEnded) throw this.#fail(TOO_MUCH);
      const before = decoder.bytesWritten;
      const written = Promise.withResolvers<void>();
      decoder.write(rest, written.resolve);
      await Promise.race([written.promise, this.#over.promise]);
      while (decoder.readableLength > 0 && !this.#isOver) await whenQuiet();
      this.#throwFault();
      const taken = decoder.bytesWritten - before;
      if (taken === 0) throw this.#fail(TOO_MUCH);
      rest = rest.subarray(taken);
      if (rest.length > 0 && this.#packing === 'zstd') this.#nextFrame(decoder);
    }
  }

  async end(): Promise<void> {
    this.#throwFault();
    if (this.#decoder === null) throw this.#fail('it is empty, but has a content-encoding');
    this.#decoder.end();
    await this.#over.promise;
    this.#throwFault();
  }

  close(): void {
    this.#fault ??= new Error('closed');
    this.#over.resolve();
    this.#decoder?.destroy();
  }

  get #isOver(): boolean {
    return this.#hasEnded || this.#fault !== null;
  }

  #start(firstByte: number): Decoder {
    const decoder = decoderFor(this.#packing, firstByte);
    const ifCurrent = (act: () => void) => (): void => {
      if (decoder === this.#decoder) act();
    };
    const end = (): void => {
      this.#hasEnded = true;
      this.#over.resolve();
    };
    decoder.on('data', (bytes) => this.#takeFrom(decoder, bytes));
    decoder.on(
      'error',
      ifCurrent(() => {
        const window = this.#packing === 'zstd' ? ', or require a window above 8 MiB' : '';
        this.#fail(`its bytes do not match its content-encoding, or end too early${window}`);
      }),
    );
    decoder.on('end', ifCurrent(end));
    decoder.on(
      'close',
      ifCurrent(() => this.#over.resolve()),
    );
    this.#decoder = decoder;
    return decoder;
  }

  /** A zstd body may have several frames, but the decoder stops after the first one in its input. */
  #nextFrame(decoder: Decoder): void {
    this.#frames += 1;
    if (this.#frames > FREE_FRAMES && this.#bytesOut < this.#frames * FRAME_BYTES_MIN) {
      throw this.#fail(
        `it has more than ${FREE_FRAMES} frames of less than ${FRAME_BYTES_MIN} bytes`,
      );
    }
    this.#decoder = null;
    this.#hasEnded = false;
    this.#over = Promise.withResolvers<void>();
    decoder.destroy();
  }

  #takeFrom(decoder: Decoder, bytes: Uint8Array): void {
    if (this.#fault !== null) return;
    this.#bytesOut += bytes.length;
    if (this.#bytesOut > FREE_BYTES && this.#bytesOut > RATIO_MAX * this.#input.bytes) {
      this.#fail(`it decompresses to more than ${RATIO_MAX} times its length`);
      return;
    }
    const taking = this.#take(bytes);
    if (taking === undefined) return;
    decoder.pause();
    taking.then(
      () => decoder.resume(),
      (error: unknown) => this.#fail(error instanceof Error ? error.message : String(error)),
    );
  }

  #fail(why: string): Error {
    this.#fault ??= new UnpackError(why);
    this.#over.resolve();
    this.#decoder?.destroy();
    return this.#fault;
  }

  #throwFault(): void {
    if (this.#fault !== null) throw this.#fault;
  }
}

/** The reason why a body cannot be decompressed. The message continues a sentence. */
export class UnpackError extends Error {}
