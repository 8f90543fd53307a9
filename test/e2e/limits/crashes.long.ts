import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openSized } from '../support/limits-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { startScopes } from '../support/limits-stage.ts';

/** An upstream with exact windows, and the same limits before it. */
const LIMITS = { rpm: 20, tpm: 4_000 };
const INPUT_TOKENS = 150;
const OUTPUT_TOKENS = 20;

/** How often the process dies, in the middle of what it does, and how long it lives each time. */
const LIVES = 12;
const LIFE_MS = 15_000;

/** Each life begins with more calls than its part of the minute has room for. */
const CALLS_PER_LIFE = 15;

let stage: LifecycleStage;

afterEach(() => stage.close());

it('a process that dies every 15 s never lets more through than a minute has, and goes on with the rest', async () => {
  stage = await startScopes([{ id: 'limited', group: { limits: LIMITS } }], {
    rates: { '*': LIMITS },
    firstByteDelayMs: 500,
  });
  const { upstream } = stage;
  for (let life = 0; life < LIVES; life += 1) {
    const calls: LifecycleOpenCall[] = Array.from({ length: CALLS_PER_LIFE }, (_, index) =>
      openSized(stage.url(), {
        upstream: 'limited',
        label: `life-${life} call-${index}`,
        inputTokens: INPUT_TOKENS,
        outputTokens: OUTPUT_TOKENS,
      }),
    );
    await delay(LIFE_MS);
    await stage.kill9();
    await Promise.all(calls.map(({ ended }) => ended));
    await stage.start();
  }
  const { refused, granted } = upstream.stats('limited');
  expect(refused).toEqual({});
  // Most of what the limit has for this time; those who died on their way there are missing.
  const minutes = (LIVES * LIFE_MS) / 60_000;
  expect(granted).toBeGreaterThan(0.8 * LIMITS.rpm * minutes);
});
