// What SDKs do of themselves after a refusal. Every request that leaves them is counted.
import { afterAll, beforeAll, describe, test } from 'vitest';
import { countingFetch } from '../support/counting-fetch.ts';
import { groupStatus } from '../support/group-status.ts';
import { holdSlot } from '../support/held-slot.ts';
import type { SdkStage } from '../support/sdk-stage.ts';
import { startSdkStage } from '../support/sdk-stage.ts';
import { until } from '../support/lifecycle-wait.ts';
import { errorOf } from '../support/reported-by-error.ts';
import { CALLERS, OPENAI } from './callers.ts';

/** Some SDKs take up to a quarter off a wait that they chose themselves; never off one they were told. */
const TIMER_SLACK_MS = 20;

/** A wait behind a call that does not end is 15 s, and up to a half more. SDKs are willing to wait for a minute. */
const RETRY_WAIT_MS_MAX = 23_000;

/** How many make the mean hold time of a new group, which begins with many seconds, a short one. */
const SHORT_CALLS = 18;

const models = (use: string): string[] => CALLERS.map((_, index) => `${use}-${index}`);
const callers = CALLERS.map((caller, index) => ({ caller, name: caller.name, index }));

let stage: SdkStage;
beforeAll(async () => {
  stage = await startSdkStage({
    groups: [...models('held'), ...models('freed')].map((model) => ({
      name: model,
      match: { models: [model] },
      limits: { max_concurrency: 1 },
      holds: { release_cooldown_ms: 0, cancel_cooldown_ms: 0 },
    })),
  });
  await Promise.all([...models('held'), ...models('freed')].map(teachShortHolds));
});
afterAll(() => stage.stop());

/** Short calls teach a group that its slots come back soon, so that its Retry-After is short. */
async function teachShortHolds(model: string): Promise<void> {
  const ask = { origin: `${stage.url}/openai`, model };
  await Promise.all(Array.from({ length: SHORT_CALLS }, () => OPENAI.ask(ask)));
}

describe.concurrent('SDKs with two retries', () => {
  test.for(callers)(
    '$name does not storm a group that is busy',
    async ({ caller, index }, { expect }) => {
      const model = `held-${index}`;
      const held = await holdSlot(stage.url, model);
      const counter = countingFetch();
      const reported = await errorOf(
        caller.ask({
          origin: `${stage.url}/${caller.upstream}`,
          model,
          headers: { 'headgate-max-wait': '0' },
          maxRetries: 2,
          fetch: counter.fetch,
        }),
      );
      expect(reported).toMatchObject({ status: 429, reason: 'busy' });
      expect(counter.sent.map(({ status }) => status)).toEqual([429, 429, 429]);
      for (const [i, { at }] of counter.sent.entries()) {
        const previous = counter.sent[i - 1];
        // This SDK has waits of its own and listens to no header.
        if (previous === undefined || caller.name === '@google/genai') continue;
        expect(previous.retryAfterMs).toBeGreaterThanOrEqual(1_000);
        expect(previous.retryAfterMs).toBeLessThan(RETRY_WAIT_MS_MAX);
        expect(at - previous.at).toBeGreaterThan(previous.retryAfterMs - TIMER_SLACK_MS);
      }
      expect(await groupStatus(stage.url, model)).toMatchObject({
        granted_total: SHORT_CALLS + 1,
        rejected_total: { busy: 3 },
      });
      expect(stage.strict.stats().models[model]).toMatchObject({ total: SHORT_CALLS + 1 });
      await held.letGo();
    },
  );

  test.for(callers)(
    '$name gets its answer once the slot is free',
    async ({ caller, index }, { expect }) => {
      const model = `freed-${index}`;
      const held = await holdSlot(stage.url, model);
      const counter = countingFetch();
      const answer = caller.ask({
        origin: `${stage.url}/${caller.upstream}`,
        model,
        headers: { 'headgate-max-wait': '0' },
        maxRetries: 2,
        fetch: counter.fetch,
      });
      await until('it is refused', () => counter.sent.length === 1);
      await held.letGo();
      expect(await answer).toBe(`[${model}] How much water does`);
      const statuses = counter.sent.map(({ status }) => status);
      // On a busy machine the group may hear of the free slot only after the first retry.
      expect([
        [429, 200],
        [429, 429, 200],
      ]).toContainEqual(statuses);
      expect(stage.strict.stats().models[model]).toMatchObject({
        total: SHORT_CALLS + 2,
        completed: SHORT_CALLS + 1,
      });
    },
  );

  test.for(callers)('$name does not repeat what cannot succeed', async ({ caller }, { expect }) => {
    for (const wrong of [
      { key: 'hg_nobody_knows_it' },
      { headers: { 'headgate-max-wait': 'a while' } },
    ]) {
      const counter = countingFetch();
      const origin = `${stage.url}/${caller.upstream}`;
      const ask = { origin, model: 'any-model', maxRetries: 2, fetch: counter.fetch, ...wrong };
      const { status } = await errorOf(caller.ask(ask));
      expect([400, 401]).toContain(status);
      expect(counter.sent).toHaveLength(1);
    }
  });
});
