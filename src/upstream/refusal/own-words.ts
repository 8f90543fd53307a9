// What callers write comes back in messages: the name of a model, of a tool, a parameter, in quotes or without, at any place
// in them. So a message says something of a key or of an address only where it is known as a whole.

/** Tells what one message of an error says, given in lower case and whole. */
export type MessageTest = (message: string) => boolean;

/** Makes the test for messages that are one of some sentences and nothing else. */
export function isSentence(...sentences: readonly RegExp[]): MessageTest {
  const any = sentences.map(({ source }) => source).join('|');
  const whole = new RegExp(`^(?:${any})$`, 'u');
  return (message) => whole.test(message);
}

const WORD = /\p{L}+/gu;

/**
 * Makes the test for messages that say something and have no word but those, whatever their order: for sentences that come in
 * too many forms to list. Weaker than `isSentence`, for what does no harm to others where a caller says it of its own call.
 */
export function isInWords(says: RegExp, words: string): MessageTest {
  const known = new Set(words.split(/\s+/));
  return (message) =>
    says.test(message) && (message.match(WORD) ?? []).every((word) => known.has(word));
}

/** Quotes that open, by their own form or by what is before them; that of `can't` does not. */
const OPENING = /[“„‘«‹]|(?<![\p{L}\p{N}])["'`´]/u;

/** Quotes that close, likewise. */
const CLOSING = /(?:[”’“»›]|["'`´])(?![\p{L}\p{N}])/gu;

/**
 * Drops what is quoted in a message: from the first quote that opens to the last one that closes, because whoever is quoted may
 * write quotes as well; to the end where none closes.
 */
export function withoutQuoted(message: string): string {
  const from = message.search(OPENING);
  if (from < 0) return message;
  const rest = message.slice(from + 1);
  const end = [...rest.matchAll(CLOSING)].at(-1);
  const after = end === undefined ? '' : rest.slice(end.index + end[0].length);
  return `${message.slice(0, from)} ${after}`;
}
