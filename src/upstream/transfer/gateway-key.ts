/** The prefix of every gateway key that Headgate creates. */
const PREFIX = 'hg_';

const BEARER = /^bearer\s+/i;

/**
 * A gateway key within a text: at the start of a word, or anywhere in the exact form that Headgate creates. A match in
 * the middle of a word is not enough, because provider tokens are random.
 */
const IN_TEXT = /(?:^|[\s=:,;"'(])hg_\S|hg_[0-9a-f]{48}/;

/** Minimum length of a key to search for anywhere in a text. A shorter one may be part of an unrelated word. */
const FOUND_ANYWHERE_LENGTH_MIN = 16;

/** Whether a credential is a gateway key. `own` is the key of this call, which need not begin with the prefix. */
export function isGatewayKey(value: string, own: string | null): boolean {
  return value === own || value.startsWith(PREFIX);
}

/** Whether the value of a form field is a gateway key. A text may mention keys but does not begin with one. */
export function isKeyInField(value: string, own: string | null): boolean {
  const key = value.trim().replace(BEARER, '');
  return key === own || /^hg_\S/.test(key);
}

/** Whether a text contains a gateway key: a header, a parameter or a cookie. */
export function holdsGatewayKey(text: string, own: string | null = null): boolean {
  return isIn(text, own) || (text.includes('%') && isIn(unescaped(text), own));
}

function isIn(text: string, own: string | null): boolean {
  // Most texts do not contain the prefix, and searching for it is faster than the pattern.
  if (text.includes(PREFIX) && IN_TEXT.test(text)) return true;
  return own !== null && own.length >= FOUND_ANYWHERE_LENGTH_MIN && text.includes(own);
}

/** Removes one layer of URI encoding where there is one. */
export function unescaped(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
