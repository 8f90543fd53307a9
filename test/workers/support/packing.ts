/** Bodies as clients and providers send them: packed with `node:zlib` of the runtime, or in pieces. */
type Sync = (bytes: Uint8Array) => Uint8Array;

interface PackingZlib {
  readonly gzipSync: Sync;
  readonly deflateSync: Sync;
  readonly deflateRawSync: Sync;
  readonly brotliCompressSync: Sync;
  readonly zstdCompressSync: Sync;
}

function packer(name: string): Sync {
  const { process } = globalThis as unknown as {
    readonly process: { getBuiltinModule(name: 'node:zlib'): PackingZlib };
  };
  const zlib = process.getBuiltinModule('node:zlib');
  switch (name) {
    case 'gzip':
    case 'x-gzip':
      return zlib.gzipSync;
    case 'deflate':
      return zlib.deflateSync;
    case 'raw':
      return zlib.deflateRawSync;
    case 'br':
      return zlib.brotliCompressSync;
    case 'zstd':
      return zlib.zstdCompressSync;
    case 'identity':
    case '':
      return (bytes) => bytes;
    default:
      throw new Error(`There is no packing ${name}.`);
  }
}

/** Packs a body as its `content-encoding` says, whose spelling may be odd. `raw` is deflate without its header. */
export function pack(body: string | Uint8Array, contentEncoding: string): Uint8Array {
  let bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  for (const item of contentEncoding.split(',')) bytes = packer(item.trim().toLowerCase())(bytes);
  // What `node:zlib` returns is a Buffer, which compares unequal to the same bytes.
  return new Uint8Array(bytes);
}

/** A body of unknown length, which comes in pieces of so many characters. */
export function inPieces(text: string, size = 65_536): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    type: 'bytes',
    pull(controller) {
      if (at >= text.length) return controller.close();
      controller.enqueue(new TextEncoder().encode(text.slice(at, at + size)));
      at += size;
    },
  });
}
