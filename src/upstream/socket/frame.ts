/** A message of a WebSocket: text or bytes, whole however it was cut into frames. */
export type Frame = string | ArrayBuffer;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** About the bytes that a message holds in memory. */
export function sizeOf(frame: Frame): number {
  return typeof frame === 'string' ? frame.length : frame.byteLength;
}

export function textOf(frame: Frame): string {
  return typeof frame === 'string' ? frame : decoder.decode(frame);
}

export function bytesOf(frame: Frame): Uint8Array {
  return typeof frame === 'string' ? encoder.encode(frame) : new Uint8Array(frame);
}
