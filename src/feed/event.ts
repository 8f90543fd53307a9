const encoder = new TextEncoder();

/** One server-sent event. JSON has no line breaks of its own, so one line of data holds it. */
export function eventBytes(name: string, data: unknown): Uint8Array {
  return encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** How long a reader that lost its stream waits before it opens another one. */
export function retryBytes(waitMs: number): Uint8Array {
  return encoder.encode(`retry: ${waitMs}\n\n`);
}
