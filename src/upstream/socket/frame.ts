/** A complete WebSocket message of text or bytes, however it was split into frames. */
export type Frame = string | ArrayBuffer;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

/** Approximate bytes that a message holds in memory. */
export function sizeOf(frame: Frame): number {
  return typeof frame === 'string' ? frame.length : frame.byteLength;
}

export function textOf(frame: Frame): string {
  return typeof frame === 'string' ? frame : decoder.decode(frame);
}

/**
 * The text of a message that should be JSON. null if its bytes are not UTF-8, which a server may decode differently.
 */
export function jsonTextOf(frame: Frame): string | null {
  if (typeof frame === 'string') return frame;
  try {
    return strictDecoder.decode(frame);
  } catch {
    return null;
  }
}

export function bytesOf(frame: Frame): Uint8Array {
  return typeof frame === 'string' ? encoder.encode(frame) : new Uint8Array(frame);
}
