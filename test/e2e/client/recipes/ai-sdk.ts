import { streamText, type LanguageModel } from 'ai';
import type { Headgate } from 'headgate/client';

export async function stream(gate: Headgate, model: LanguageModel, prompt: string) {
  return gate.withLease({ group: 'glm' }, (lease) => {
    const { textStream } = streamText({
      model,
      prompt,
      maxRetries: 0,
      abortSignal: lease.signal,
      onFinish: ({ usage: { inputTokens, outputTokens } }) => {
        lease.usage = { inputTokens, outputTokens };
      },
      // The AI SDK reports errors here instead of throwing them.
      onError: async ({ error }) => {
        await lease.report(error);
      },
    });
    return textStream;
  });
}
