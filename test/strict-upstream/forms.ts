import { MINIMAX, MOONSHOT, OPENROUTER, ZAI } from './forms-compat.ts';
import { ANTHROPIC, BEDROCK, COHERE, GEMINI, OLLAMA } from './forms-native.ts';
import { AZURE, CEREBRAS, DASHSCOPE, DEEPSEEK } from './forms-openai.ts';
import { GROQ, MISTRAL, OPENAI, TOGETHER } from './forms-openai.ts';
import type { RefusalForm, StrictProvider, StrictRefusal } from './refusal.ts';
import type { ProviderForms } from './words.ts';
import { plainWords } from './words.ts';

/**
 * Status, codes and the words that tell a cause are those of the providers' error pages and of answers
 * that clients have published in bug reports, up to October 2026. Where no example of a cause is known,
 * the sentence is made up in the provider's own envelope, or `plainWords` stands in.
 */
const FORMS: Readonly<Record<StrictProvider, ProviderForms>> = {
  openai: OPENAI,
  anthropic: ANTHROPIC,
  gemini: GEMINI,
  azure: AZURE,
  bedrock: BEDROCK,
  groq: GROQ,
  cerebras: CEREBRAS,
  mistral: MISTRAL,
  deepseek: DEEPSEEK,
  zai: ZAI,
  moonshot: MOONSHOT,
  minimax: MINIMAX,
  dashscope: DASHSCOPE,
  openrouter: OPENROUTER,
  ollama: OLLAMA,
  cohere: COHERE,
  together: TOGETHER,
};

/** A refusal as a provider sends it: status, headers and body. */
export function refusalForm(provider: StrictProvider, refusal: StrictRefusal): RefusalForm {
  const { words, headers, body } = FORMS[provider];
  const said = (words[refusal.kind] ?? plainWords)(refusal);
  return {
    status: said.status ?? 429,
    headers: headers(refusal, said),
    body: body(said, refusal),
  };
}
