/** How a body is compressed, of the ways that the runtime can undo. */
export type Packing = 'plain' | 'gzip' | 'deflate';

const PACKINGS: ReadonlyMap<string, Packing> = new Map([
  ['', 'plain'],
  ['identity', 'plain'],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['deflate', 'deflate'],
]);

/** Reads how a body is packed from its `content-encoding`; null: a compression that the runtime cannot undo. */
export function packingOf(contentEncoding: string | null): Packing | null {
  return PACKINGS.get(contentEncoding?.trim().toLowerCase() ?? '') ?? null;
}

/** A body as it was before it was compressed that way. */
export function unpacked(
  body: ReadableStream<Uint8Array>,
  packing: Packing,
): ReadableStream<Uint8Array> {
  return packing === 'plain' ? body : body.pipeThrough(new DecompressionStream(packing));
}
