import { CALLER_KEY } from '../sdk/cases/sdk-case.ts';

/** A call that holds its slot until it is let go. */
export interface HeldSlot {
  letGo(): Promise<void>;
}

/** Takes a slot with a stream that goes silent after its first chunk. */
export async function holdSlot(headgate: string, model: string): Promise<HeldSlot> {
  const gone = new AbortController();
  const response = await fetch(`${headgate}/openai/v1/chat/completions`, {
    method: 'POST',
    signal: gone.signal,
    headers: {
      authorization: `Bearer ${CALLER_KEY}`,
      'content-type': 'application/json',
      'x-strict-silent-after-chunks': '1',
    },
    body: JSON.stringify({
      model,
      stream: true,
      messages: [{ role: 'user', content: 'Hold.' }],
    }),
  });
  if (!response.ok || response.body === null) {
    throw new Error(`no slot of ${model} to hold: ${response.status} ${await response.text()}`);
  }
  const reader = response.body.getReader();
  await reader.read();
  return {
    async letGo() {
      gone.abort();
      await reader.closed.catch(() => undefined);
    },
  };
}
