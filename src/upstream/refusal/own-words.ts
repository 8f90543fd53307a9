// Messages repeat what callers wrote: the name of a model, a tool or a parameter, with or without quotes, at any
// position. A message therefore only counts as evidence about a key or an address if it is known as a whole.

/** Whether one message of an error, given in lower case and complete, matches. */
export type MessageTest = (message: string) => boolean;

/** Creates the test for messages that consist of exactly one of the sentences. */
export function isSentence(...sentences: readonly RegExp[]): MessageTest {
  const any = sentences.map(({ source }) => source).join('|');
  const whole = new RegExp(`^(?:${any})$`, 'u');
  return (message) => whole.test(message);
}

const WORD = /\p{L}+/gu;

/**
 * Creates the test for messages that match a pattern and contain only known words, in any order. It is for sentences
 * with too many forms to list. It is weaker than `isSentence`, so it is only for errors that harm no other caller if a
 * caller provokes them.
 */
export function isInWords(pattern: RegExp, words: string): MessageTest {
  const known = new Set(words.split(/\s+/));
  return (message) =>
    pattern.test(message) && (message.match(WORD) ?? []).every((word) => known.has(word));
}

/** Opening quotes, recognized by their form or by the character before them. The apostrophe in `can't` is not one. */
const OPENING = /[“„‘«‹]|(?<![\p{L}\p{N}])["'`´]/u;

/** Closing quotes, recognized in the same way. */
const CLOSING = /(?:[”’“»›]|["'`´])(?![\p{L}\p{N}])/gu;

/**
 * Removes quoted text from a message, from the first opening quote to the last closing one, because the quoted text may
 * contain quotes as well. Without a closing quote, removes everything up to the end.
 */
export function withoutQuoted(message: string): string {
  const from = message.search(OPENING);
  if (from < 0) return message;
  const rest = message.slice(from + 1);
  const end = [...rest.matchAll(CLOSING)].at(-1);
  const after = end === undefined ? '' : rest.slice(end.index + end[0].length);
  return `${message.slice(0, from)} ${after}`;
}
