// Limit headers of served calls over several windows of the upstream, which begin by its own clock.
import { afterAll, describe, expect, it } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { until } from '../support/worker.ts';
import { refusedOf, reporting } from './stage.ts';

afterAll(nothingLeaks);

/** It has to last for long enough to be told from a bucket. */
const WINDOW_MS = 6_000;
const WINDOW = { rpm: 20, tpm: 1_000_000, windowMs: WINDOW_MS, algorithm: 'fixed' } as const;

const openai = { id: 'openai' };

describe('a fixed window', () => {
  /** A window that just began can be told from a bucket before it is used up. Windows of the upstream start with the clock. */
  const windowBegins = () =>
    until(() => expect(Date.now() % WINDOW_MS).toBeLessThan(WINDOW_MS / 4));

  const cases = (['auto', 'window'] as const).flatMap((headers) =>
    [1, 6].map((callers) => [headers, callers] as const),
  );

  it.each(cases)('refuses no request: %s, %d callers', async (limit_headers, callers) => {
    const stage = await reporting(WINDOW, { upstream: { ...openai, limit_headers } });
    await windowBegins();
    expect(await refusedOf(stage, callers, 30)).toEqual([{}, 30]);
  });

  it.each(cases)('of an unknown upstream is read too: %s, %d callers', async (limit_headers, n) => {
    const stage = await reporting(WINDOW, {
      settings: { refuseAs: 'openai' },
      upstream: { limit_headers },
    });
    await windowBegins();
    expect(await refusedOf(stage, n, 30)).toEqual([{}, 30]);
  });

  it.each([1, 6])('refuses no call for its tokens, of %d callers', async (callers) => {
    const window = { ...WINDOW, rpm: 10_000, tpm: 20_000 };
    const stage = await reporting(window, { upstream: { ...openai, limit_headers: 'window' } });
    await windowBegins();
    // A twentieth of the limit is less than one of them.
    const headers = { 'x-strict-input-tokens': '1500' };
    expect(await refusedOf(stage, callers, 24, { headers })).toEqual([{}, 24]);
  });
});

describe('a bucket', () => {
  /** Ten requests, and another one every 300 ms. */
  const bucket = { rpm: 10, tpm: 1_000_000, windowMs: 3_000, algorithm: 'bucket' } as const;

  it.each([1, 6])('of a known upstream refuses no request: %d callers', async (callers) => {
    const stage = await reporting(bucket, { settings: { hidesWaits: true }, upstream: openai });
    expect(await refusedOf(stage, callers, 24)).toEqual([{}, 24]);
  });

  it('of an unknown upstream refuses only the calls that show it', async () => {
    const stage = await reporting(bucket, { settings: { refuseAs: 'openai', hidesWaits: true } });
    const [refused] = await refusedOf(stage, 6, 36);
    expect(Object.values(refused ?? {}).reduce((sum, n) => sum + n, 0)).toBeLessThanOrEqual(10);
  });
});
