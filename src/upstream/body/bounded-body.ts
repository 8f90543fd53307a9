/** Reads the whole body of a response. Returns null if it is longer than `bytesMax`. The rest is then not read. */
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

/** As `bytesWithin`, decoded as UTF-8. */
export async function textWithin(answer: Response, bytesMax: number): Promise<string | null> {
  const bytes = await bytesWithin(answer, bytesMax);
  return bytes === null ? null : new TextDecoder().decode(bytes);
}

/** The body of a request to one of our routes, or why it could not be read. */
export type OwnBody =
  | { readonly kind: 'read'; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'too long' }
  /** The caller disconnected, or sent less than it announced. */
  | { readonly kind: 'broken' };

/** Reads the body of a request to one of our routes. A caller that disconnects half-way is not an error of Headgate. */
export async function readOwnBody({ body }: Request, bytesMax: number): Promise<OwnBody> {
  let bytes: Uint8Array<ArrayBuffer> | null;
  try {
    bytes = await bytesWithin(new Response(body), bytesMax);
  } catch {
    return { kind: 'broken' };
  }
  return bytes === null ? { kind: 'too long' } : { kind: 'read', bytes };
}

export const BODY_BROKEN =
  'The request body ended before its announced length. Send the whole request again.';
