const encoder = new TextEncoder();

/** SHA-256 of a secret as `sha256:<hex>`, the form in which keys of the admin API are stored. */
export async function secretHash(secret: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', encoder.encode(secret));
  return `sha256:${new Uint8Array(digest).toHex()}`;
}

/**
 * Whether two hashes are of one secret. They have one length, so that neither the length of a secret nor
 * the first difference shows in the time.
 */
export function isSameHash(a: string, b: string): boolean {
  const [left, right] = [encoder.encode(a), encoder.encode(b)];
  return left.byteLength === right.byteLength && crypto.subtle.timingSafeEqual(left, right);
}
