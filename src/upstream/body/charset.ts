/** Encodings in which the structure of JSON and of forms, and the name of a model, are the same bytes. */
const ASCII_LIKE = /^(?:utf-?8|us-ascii|iso-8859-1)$/i;

/** Whether a content type says that its text is in none of these. */
export function hasOddCharset(contentType: string): boolean {
  const said = contentType.matchAll(/charset[^=;]*=\s*"?([^";\s]*)/gi);
  return [...said].some(([, charset = '']) => !ASCII_LIKE.test(charset));
}
