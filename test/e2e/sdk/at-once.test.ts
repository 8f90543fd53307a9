// Twelve calls at once with each SDK, its retries off, to an upstream that allows three: through
// Headgate none is refused, all complete, and the upstream never sees more than three.
import { afterAll, beforeAll, describe, test } from 'vitest';
import { RateLimitError } from 'openai';
import type { SdkStage } from '../support/sdk-stage.ts';
import { startSdkStage } from '../support/sdk-stage.ts';
import { until } from '../support/lifecycle-wait.ts';
import type { SdkCaller } from './callers.ts';
import { CALLERS, LANGCHAIN, OPENAI } from './callers.ts';

const CALLS = 12;
const LIMIT = 3;

interface AtOnceRound {
  readonly name: string;
  /** Id of the upstream, which is a scope of its own at the strict one. */
  readonly id: string;
  readonly caller: SdkCaller;
  readonly streams: boolean;
}

const rounds: readonly AtOnceRound[] = [...CALLERS, LANGCHAIN].flatMap((caller, index) =>
  [false, true].map((streams) => ({
    name: `${caller.name}${streams ? ', streaming' : ''}`,
    id: `tight-${index}-${streams ? 'stream' : 'whole'}`,
    caller,
    streams,
  })),
);

const dialects = { openai: 'openai', anthropic: 'anthropic', gemini: 'gemini' } as const;

let stage: SdkStage;
beforeAll(async () => {
  stage = await startSdkStage({
    upstreams: (strict) =>
      rounds.map(({ id, caller }) => ({
        id,
        base_url: strict.scopeUrl(id),
        dialect: dialects[caller.upstream],
      })),
    groups: rounds.map(({ id }) => ({
      name: id,
      match: { upstreams: [id] },
      limits: { max_concurrency: LIMIT },
    })),
  });
  for (const { id } of rounds) {
    stage.strict.configure({ limit: LIMIT, chunkDelayMs: 10, silentAfterChunks: 0 }, id);
  }
});
afterAll(() => stage.stop());

const answer = '[some-model] How much water does';

async function twelve({ caller, streams }: AtOnceRound, origin: string): Promise<string[]> {
  const ask = { origin, model: 'some-model' };
  return Promise.all(
    Array.from({ length: CALLS }, () => (streams ? caller.askStreaming(ask) : caller.ask(ask))),
  );
}

describe.concurrent('twelve calls where three are allowed', () => {
  test.for(rounds)('$name', async (round, { expect }) => {
    const { strict } = stage;
    const answered = twelve(round, `${stage.url}/${round.id}`);
    // The first ones stay until all slots are taken.
    await until('three are there', () => strict.stats(round.id).inFlight === LIMIT);
    strict.configure({ silentAfterChunks: null }, round.id);
    strict.resume(round.id);
    expect(await answered).toEqual(Array.from({ length: CALLS }, () => answer));
    // The upstream may take a moment longer to see its own end than the client.
    await until('all have ended', () => strict.stats(round.id).inFlight === 0);
    expect(strict.stats(round.id)).toMatchObject({
      total: CALLS,
      completed: CALLS,
      rejected429: 0,
      aborted: 0,
      peak: LIMIT,
    });
  });
});

test('the same calls straight to the upstream meet its limit', async ({ expect }) => {
  const id = 'tight-straight';
  stage.strict.configure({ limit: LIMIT, firstByteDelayMs: 30 }, id);
  const ask = { origin: stage.strict.scopeUrl(id), model: 'some-model' };
  const settled = await Promise.allSettled(Array.from({ length: CALLS }, () => OPENAI.ask(ask)));
  const refused = settled.filter((one) => one.status === 'rejected');
  expect(refused.length).toBeGreaterThan(0);
  for (const { reason } of refused) expect(reason).toBeInstanceOf(RateLimitError);
  expect(stage.strict.stats(id).peak).toBeGreaterThan(LIMIT);
});
