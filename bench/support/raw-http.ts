/** Just enough HTTP for one runtime's client, straight on the bytes of a connection. */

const HEAD_END = '\r\n\r\n';
export const LAST_CHUNK = '0\r\n\r\n';

/** A request whose last byte is there. */
export interface WholeRequest {
  readonly length: number;
  readonly head: string;
}

/** Finds the request that begins `bytes`; null: it is not all there. */
export function wholeRequest(bytes: Buffer): WholeRequest | null {
  const headLength = bytes.indexOf(HEAD_END) + HEAD_END.length;
  if (headLength < HEAD_END.length) return null;
  const head = bytes.toString('latin1', 0, headLength);
  const isChunked = /transfer-encoding: *chunked/i.test(head);
  if (isChunked) {
    const end = bytes.indexOf(LAST_CHUNK, headLength);
    return end < 0 ? null : { length: end + LAST_CHUNK.length, head };
  }
  const length = headLength + Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
  return bytes.length < length ? null : { length, head };
}
