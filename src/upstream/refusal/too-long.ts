import { isInWords, isSentence, type MessageTest } from './own-words.ts';

/**
 * Codes for a call of more tokens than the model takes: OpenAI's and of those who speak like it, llama.cpp's, GitHub's. As of
 * 2026-11-23.
 */
export const TOO_LONG_CODES: readonly string[] = [
  'context_length_exceeded',
  'exceed_context_size_error',
  'model_max_prompt_tokens_exceeded',
];

const SAYS =
  /prompt (?:is )?too long|input is too long|(?:maximum|max) (?:context|prompt|model|allowed input) length|context (?:length|window|size|limit)|maximum number of tokens allowed|exceeded model token limit|token count of \d|range of input length|too large for model/;

/** Every word of their messages: each provider has its own, and two or three of them, with figures. */
const WORDS = `
  a about adjust again algo allowed an and application automatically available but by completion compress compression configured
  contains context count decrease either endpoint exceed exceeded exceeding exceeds fit for from functions greater has have
  however if in increasing initial input internalerror invalidparameter is it keep large larger least length less limit
  long longer make max maximum message messages middle model more must new number of on one only or out output parameter
  please plugin prompt provided range reduce request requested requests resulted s should shorten shorter size sum system text
  than that the this to token tokens too tool total transform try trying up use using value was when window with you your be
`;

const isInKnownWords = isInWords(SAYS, WORDS.trim());

/** Tells those with a word that stands before callers' names as well: Kimi's and MiniMax's. */
const isOwnWay = isSentence(
  /invalid request: your request exceeded model token limit: \d+ \(requested: \d+\)/,
  /invalid params, context window exceeds limit(?: \(2013\))?/,
);

/**
 * Tells a message of a provider without such a code: Anthropic's, Google's, Bedrock's, DeepSeek's, OpenRouter's, vLLM's. A caller that
 * has it said of its own call sends that call to other places, and does nothing to others.
 */
export const isTooLong: MessageTest = (message) => isOwnWay(message) || isInKnownWords(message);
