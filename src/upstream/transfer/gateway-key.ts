/** The beginning of every gateway key that Headgate makes. */
const PREFIX = 'hg_';

const BEARER = /^bearer\s+/i;

/**
 * Where one stands in a text: as a word, or as Headgate makes them anywhere. In the middle of a word three
 * letters mean nothing: the tokens of providers are random.
 */
const IN_TEXT = /(?:^|[\s=:,;"'(])hg_\S|hg_[0-9a-f]{48}/;

/**
 * Minimum length of a key that is looked for anywhere: a shorter one may be a part of an innocent word.
 */
const FOUND_ANYWHERE_LENGTH_MIN = 16;

/** Whether a credential is a gateway key. `own`: the one of this call, which need not begin as ours do. */
export function isGatewayKey(value: string, own: string | null): boolean {
  return value === own || value.startsWith(PREFIX);
}

/** Whether the value of a form's field is a gateway key. Texts may speak of keys, and begin with none. */
export function isKeyInField(value: string, own: string | null): boolean {
  const key = value.trim().replace(BEARER, '');
  return key === own || /^hg_\S/.test(key);
}

/** Whether there is a gateway key somewhere in a text: a header, a parameter, a cookie. */
export function holdsGatewayKey(text: string, own: string | null = null): boolean {
  return isIn(text, own) || (text.includes('%') && isIn(unescaped(text), own));
}

function isIn(text: string, own: string | null): boolean {
  // Most texts hold no prefix, which is found faster than the pattern.
  if (text.includes(PREFIX) && IN_TEXT.test(text)) return true;
  return own !== null && own.length >= FOUND_ANYWHERE_LENGTH_MIN && text.includes(own);
}

/** With one layer of URI encoding less, as far as it is one. */
export function unescaped(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
