import type { StrictUsage } from './answer.ts';
import type { StrictPrompt } from './prompt.ts';
import type { StrictBehaviour } from './settings.ts';

/** The tokens of a call; `writes` says whether its answer has any. */
export function usageFor(
  {
    chunks,
    inputTokens,
    cachedTokens,
    outputTokens,
    reasoningTokens,
    serviceTier,
  }: StrictBehaviour,
  prompt: StrictPrompt,
  writes: boolean,
): StrictUsage {
  const input = inputTokens ?? prompt.inputTokens;
  const output = writes && chunks > 0 ? (outputTokens ?? chunks) : 0;
  return {
    input,
    cached: Math.min(cachedTokens, input),
    output,
    reasoning: Math.min(reasoningTokens, output),
    ...(serviceTier !== null && { tier: serviceTier }),
  };
}
