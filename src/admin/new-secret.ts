/**
 * Bytes of chance in a key: nobody guesses 192 bits, so that a plain digest of it may be stored.
 */
const SECRET_BYTES = 24;

/** Makes a new key with that beginning. It is shown once and kept nowhere. */
export function newSecret(prefix: string): string {
  return prefix + crypto.getRandomValues(new Uint8Array(SECRET_BYTES)).toHex();
}
