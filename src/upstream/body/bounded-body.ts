/** The whole body of an answer; null: it is longer than that, and the rest of it is not read. */
export async function bytesWithin(
  { body }: Response,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  if (body === null) return new Uint8Array();
  const reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> = body.getReader();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let left = bytesMax;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(pieces).arrayBuffer());
    left -= value.length;
    if (left < 0) {
      await reader.cancel();
      return null;
    }
    pieces.push(value);
  }
}

/** The same as text. */
export async function textWithin(answer: Response, bytesMax: number): Promise<string | null> {
  const bytes = await bytesWithin(answer, bytesMax);
  return bytes === null ? null : new TextDecoder().decode(bytes);
}
