import { parseHeaderValue } from '../../runtime/header-value.ts';

/** Encodings in which the structure of JSON and of forms, and the name of a model, are the same bytes. */
const ASCII_LIKE = /^(?:utf-?8|(?:us-)?ascii|latin-?1|iso-8859-\d{1,2}|windows-125[0-8])$/i;

/** Parsers search a content type for it that is broken. */
const CHARSET = /charset[^=;]*=\s*"?([^";\s]*)/gi;

/** Whether a content type says that its text is in none of these. */
export function hasOddCharset(contentType: string): boolean {
  const { parameters, isValid } = parseHeaderValue(contentType);
  const named = isValid
    ? parameters.filter(({ name }) => /^charset(?:\*|$)/.test(name)).map(({ value }) => value)
    : [...contentType.matchAll(CHARSET)].map(([, charset = '']) => charset);
  return named.some((charset) => !ASCII_LIKE.test(charset));
}
