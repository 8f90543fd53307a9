import { ConverseCommand, type BedrockRuntimeClient } from '@aws-sdk/client-bedrock-runtime';
import type { Headgate } from 'headgate/client';

/** Requires a client with `maxAttempts: 1`, because the client's own retries would bypass the queue. */
export async function converse(
  gate: Headgate,
  bedrock: BedrockRuntimeClient,
  modelId: string,
  text: string,
) {
  return gate.withLease({ upstream: 'bedrock', model: modelId }, async (lease) => {
    const command = new ConverseCommand({
      modelId,
      messages: [{ role: 'user', content: [{ text }] }],
    });
    const answer = await bedrock.send(command, { abortSignal: lease.signal });
    lease.usage = {
      inputTokens: answer.usage?.inputTokens,
      outputTokens: answer.usage?.outputTokens,
    };
    return answer;
  });
}
