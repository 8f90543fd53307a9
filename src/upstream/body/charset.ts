import { parseHeaderValue } from '../../runtime/header-value.ts';

/** Encodings in which the structure of JSON and forms and the name of a model have the same bytes. */
const ASCII_LIKE = /^(?:utf-?8|(?:us-)?ascii|latin-?1|iso-8859-\d{1,2}|windows-125[0-8])$/i;

/** Parsers search a malformed content type for this. */
const CHARSET = /charset[^=;]*=\s*"?([^";\s]*)/gi;

/** Whether a content type names a charset other than these. */
export function hasOddCharset(contentType: string): boolean {
  const { parameters, isValid } = parseHeaderValue(contentType);
  const named = isValid
    ? parameters.filter(({ name }) => /^charset(?:\*|$)/.test(name)).map(({ value }) => value)
    : [...contentType.matchAll(CHARSET)].map(([, charset = '']) => charset);
  return named.some((charset) => !ASCII_LIKE.test(charset));
}
