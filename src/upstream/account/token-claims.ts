/** Maximum length of a token that is decoded. Without it, a header as large as the platform allows would be decoded. */
const TOKEN_LENGTH_MAX = 16_384;

/** Maximum length of a claim that can name an account. Longer values are ignored. */
const VALUE_LENGTH_MAX = 200;

/**
 * Reads the claims of a key that is a JSON Web Token. Returns null for other keys. The signature is not checked, so the
 * claims are unverified until the upstream accepts the token.
 */
export function claimsOf(token: string): Readonly<Record<string, unknown>> | null {
  // Every token starts with `eyJ`, the base64 of the beginning of a JSON object.
  if (!token.startsWith('eyJ') || token.length > TOKEN_LENGTH_MAX) return null;
  const [, payload, signature, ...rest] = token.split('.');
  if (payload === undefined || signature === undefined || rest.length > 0) return null;
  try {
    const binary = atob(payload.replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return isObject(claims) ? claims : null;
  } catch {
    return null;
  }
}

/** Returns the value at a path as text, or null if it is missing, empty, too long, or neither a string nor a number. */
export function claimAt(
  claims: Readonly<Record<string, unknown>>,
  path: readonly string[],
): string | null {
  let found: unknown = claims;
  for (const name of path) {
    if (!isObject(found) || !Object.hasOwn(found, name)) return null;
    found = found[name];
  }
  if (typeof found === 'number') return String(found);
  return typeof found === 'string' && found !== '' && found.length <= VALUE_LENGTH_MAX
    ? found
    : null;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
