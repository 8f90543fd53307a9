// The operator's key for an upstream is not set: no SDK sends such a call twice, and each says why.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { countingFetch } from '../support/counting-fetch.ts';
import type { SdkStage } from '../support/sdk-stage.ts';
import { startSdkStage } from '../support/sdk-stage.ts';
import { errorOf } from '../support/reported-by-error.ts';
import { CALLERS } from './callers.ts';

const GATEWAY_KEY = 'hg_for-the-tests-of-secrets';

let stage: SdkStage;
beforeAll(async () => {
  stage = await startSdkStage({
    upstreams: (strict) =>
      ['openai', 'anthropic', 'gemini'].map((id) => ({
        id,
        base_url: strict.url,
        auth: { secret: 'UPSTREAM_NOT_SET' },
      })),
    keys: [
      { id: 'tests', hash: `sha256:${createHash('sha256').update(GATEWAY_KEY).digest('hex')}` },
    ],
  });
});
afterAll(() => stage.stop());

describe.each(CALLERS)('$name', (caller) => {
  test.each(['ask', 'askStreaming'] as const)('%s is refused once', async (way) => {
    const counter = countingFetch();
    const reported = await errorOf(
      caller[way]({
        origin: `${stage.url}/${caller.upstream}`,
        model: 'any-model',
        key: GATEWAY_KEY,
        maxRetries: 2,
        fetch: counter.fetch,
      }),
    );
    expect(counter.sent.map(({ status }) => status)).toEqual([424]);
    expect(reported).toMatchObject({ status: 424, reason: 'secret_missing' });
    const { shouldRetry = 'false', retryAfter = null } = reported;
    expect([shouldRetry, retryAfter]).toEqual(['false', null]);
    expect(reported.body).toContain('the secret `UPSTREAM_NOT_SET` is not set');
    expect(stage.strict.stats().total).toBe(0);
  });
});
