/** A message of a WebSocket: text or bytes, whole however it was cut into frames. */
export type Frame = string | ArrayBuffer;
