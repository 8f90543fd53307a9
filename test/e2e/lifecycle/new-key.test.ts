// The first calls of a new key: one that may not wait gets the true reason why it cannot start, and the time when it can.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startStage, type LifecycleStage } from '../support/lifecycle-stage.ts';

let stage: LifecycleStage;

beforeAll(async () => {
  stage = await startStage({
    config: ({ url }) => ({ upstreams: [{ id: 'house', base_url: url, openai_at: '/v1' }] }),
  });
});

afterAll(() => stage.close());

function call(key: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${stage.url()}/house/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${key}`,
      ...headers,
    },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
  });
}

/** Sends calls that may not wait, after the key's first one, until one is served. Returns the refusals before it. */
async function refusalsOf(key: string): Promise<{ text: string; retryMs: number }[]> {
  const first = await call(key);
  expect(first.status).toBe(200);
  await first.text();
  const refusals: { text: string; retryMs: number }[] = [];
  for (;;) {
    const answer = await call(key, { 'headgate-max-wait': '0' });
    const text = await answer.text();
    if (answer.status === 200) return refusals;
    refusals.push({ text, retryMs: Number(answer.headers.get('retry-after-ms')) });
  }
}

it('no call is refused for slots that are free', async () => {
  const refusals = [];
  for (let key = 0; key < 5; key += 1) refusals.push(...(await refusalsOf(`sk-new-key-${key}`)));
  for (const { text, retryMs } of refusals) {
    expect(text).toMatch(/starts no calls for the next \d+ ms/);
    expect(text).not.toContain('are in use');
    expect(retryMs).toBeGreaterThan(0);
    expect(retryMs).toBeLessThanOrEqual(250);
  }
});
