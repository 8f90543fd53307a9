/** Random bytes of a key. 192 bits cannot be guessed, so a plain digest may be stored. */
const SECRET_BYTES = 24;

/** Creates a key with this prefix. It is shown once, and not stored. */
export function newSecret(prefix: string): string {
  return prefix + crypto.getRandomValues(new Uint8Array(SECRET_BYTES)).toHex();
}
