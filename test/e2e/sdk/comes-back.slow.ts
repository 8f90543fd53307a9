// A client that is refused without anybody knowing for how long comes back when it is told to.
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SdkStage } from '../support/sdk-stage.ts';
import { startSdkStage } from '../support/sdk-stage.ts';

let stage: SdkStage;

beforeAll(async () => {
  stage = await startSdkStage({
    groups: [{ name: 'draining', match: { models: ['draining'] }, draining: true }],
  });
});

afterAll(() => stage.stop());

test('the openai SDK waits as long as a draining group says', async () => {
  const attempts: { readonly at: number; readonly toldMs: number }[] = [];
  const client = new OpenAI({
    baseURL: `${stage.url}/openai/v1`,
    apiKey: 'sk-comes-back',
    maxRetries: 1,
    fetch: async (url, init) => {
      const at = performance.now();
      const answer = await fetch(url, init);
      attempts.push({ at, toldMs: Number(answer.headers.get('retry-after-ms')) });
      return answer;
    },
  });
  const messages = [{ role: 'user' as const, content: 'hello' }];
  await expect(client.chat.completions.create({ model: 'draining', messages })).rejects.toThrow(
    'is being drained',
  );
  const [first, second] = attempts;
  expect(attempts.length).toBe(2);
  expect(first?.toldMs).toBeGreaterThanOrEqual(15_000);
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(first?.toldMs ?? NaN);
  expect(second?.toldMs).toBeGreaterThanOrEqual(30_000);
});
