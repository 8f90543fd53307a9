const encoder = new TextEncoder();

/** Encodes a server-sent event. JSON has no line breaks of its own, so one `data` line is enough. */
export function eventBytes(name: string, data: unknown): Uint8Array {
  return encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Encodes how long a reader waits before it reconnects after losing its stream. */
export function retryBytes(waitMs: number): Uint8Array {
  return encoder.encode(`retry: ${waitMs}\n\n`);
}
