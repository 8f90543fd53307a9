import type { LifecycleOpenCall } from './lifecycle-call.ts';
import { openCall } from './lifecycle-call.ts';

/** A chat call whose size is known, in tokens as the strict upstream counts them. */
export interface SizedCall {
  readonly upstream: string;
  readonly label: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Maximum of output that the call names. @default outputTokens */
  readonly maxTokens?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a call, not as a stream, so that nothing is said before its answer. */
export function openSized(url: string, call: SizedCall): LifecycleOpenCall {
  const { upstream, label, inputTokens, outputTokens, maxTokens = outputTokens } = call;
  return openCall(url, {
    path: `/${upstream}/v1/chat/completions`,
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer practice-key',
      'x-label': label,
      'x-strict-output-tokens': String(outputTokens),
      ...call.headers,
    },
    body: JSON.stringify({
      model: 'practice',
      max_tokens: maxTokens,
      messages: [{ role: 'user', content: 'the '.repeat(inputTokens) }],
    }),
  });
}
