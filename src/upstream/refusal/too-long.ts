import { isInWords, isSentence, type MessageTest } from './own-words.ts';

/**
 * Codes for a call with more tokens than the model accepts: OpenAI and compatible APIs, llama.cpp, GitHub. As of
 * 2026-11-23.
 */
export const TOO_LONG_CODES: readonly string[] = [
  'context_length_exceeded',
  'exceed_context_size_error',
  'model_max_prompt_tokens_exceeded',
];

const PHRASES =
  /prompt (?:is )?too long|input is too long|(?:maximum|max) (?:context|prompt|model|allowed input) length|context (?:length|window|size|limit)|maximum number of tokens allowed|exceeded model token limit|token count of \d|range of input length|too large for model/;

/** Every word of their messages. Each provider has two or three messages of its own, with numbers. */
const WORDS = `
  a about adjust again algo allowed an and application automatically available but by completion compress compression configured
  contains context count decrease either endpoint exceed exceeded exceeding exceeds fit for from functions greater has have
  however if in increasing initial input internalerror invalidparameter is it keep large larger least length less limit
  long longer make max maximum message messages middle model more must new number of on one only or out output parameter
  please plugin prompt provided range reduce request requested requests resulted s should shorten shorter size sum system text
  than that the this to token tokens too tool total transform try trying up use using value was when window with you your be
`;

const isInKnownWords = isInWords(PHRASES, WORDS.trim());

/** Messages with a word that may also precede callers' names: Kimi's and MiniMax's. */
const isFixedSentence = isSentence(
  /invalid request: your request exceeded model token limit: \d+ \(requested: \d+\)/,
  /invalid params, context window exceeds limit(?: \(2013\))?/,
);

/**
 * Whether a message, from a provider without such a code, means that a call is too long: Anthropic, Google, Bedrock,
 * DeepSeek, OpenRouter, vLLM. A caller that provokes it only moves its own call to another upstream, and affects no
 * other caller.
 */
export const isTooLong: MessageTest = (message) =>
  isFixedSentence(message) || isInKnownWords(message);
