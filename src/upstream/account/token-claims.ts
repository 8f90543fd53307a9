/** Maximum length of a token that is looked into: a header may hold as much as there is room for in a request. */
const TOKEN_LENGTH_MAX = 16_384;

/** Maximum length of a claim's value that may name an account. */
const VALUE_LENGTH_MAX = 200;

/**
 * Reads the claims of a key that is a JSON Web Token; null: it is none. Its signature is not looked at: what it says is a
 * claim, until the upstream has taken the token.
 */
export function claimsOf(token: string): Readonly<Record<string, unknown>> | null {
  // Every token begins so: it is how a JSON object begins in base64.
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

/** Finds the value at a path, as text; null: there is none that could name anything. */
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
