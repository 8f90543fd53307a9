import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BODY_MIB_MIN } from '../../../src/upstream/body/body-budget.ts';
import type { LargeBody, ModelPlace } from '../support/lifecycle-bodies.ts';
import { largeBody } from '../support/lifecycle-bodies.ts';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openCall, openChat } from '../support/lifecycle-call.ts';
import { peakMiBDuring, residentMiB } from '../support/lifecycle-memory.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

/**
 * Bodies of 20 MB. The upstream's limits depend on the model, so Headgate must find the model wherever
 * it stands, and what it has read of a call that waits must not fill the memory.
 */
const BODY_BYTES = 20_000_000;
const QUEUED = 20;

/**
 * Maximum that workerd may take while 20 such calls wait and go, beyond what it took before. The bodies are
 * 400 MB; the budget for what is read of them is Cloudflare's 48 MiB, and the rest is code and buffers.
 * Measured: 59 to 62 MiB, and about 260 when sent buffers were left to the garbage collector.
 */
const GROWTH_MIB_MAX = 160;

const PLACES: readonly ModelPlace[] = ['first', 'last', 'after a file'];

/** In the automatic group of its model, and in a configured one without cool-downs. */
const MODEL = 'glm-5.1';
const QUEUED_MODEL = 'glm-4.6';

let stage: LifecycleStage;

beforeEach(async () => {
  stage = await startStage({
    bodyMemoryMib: BODY_MIB_MIN,
    config: ({ url }) => ({
      upstreams: [{ id: 'zai', base_url: url }],
      groups: [
        {
          name: 'large',
          match: { models: [QUEUED_MODEL] },
          limits: { max_concurrency: 2 },
          holds: NO_HOLDS,
        },
      ],
    }),
    upstream: { limits: { [MODEL]: 1, [QUEUED_MODEL]: 2 } },
  });
});

afterEach(() => stage.close());

function makeBodies(model: string): ReadonlyMap<ModelPlace, LargeBody> {
  return new Map(PLACES.map((place) => [place, largeBody(place, model, BODY_BYTES)]));
}

const bodies = { [MODEL]: makeBodies(MODEL), [QUEUED_MODEL]: makeBodies(QUEUED_MODEL) };

interface LargeCall {
  readonly call: LifecycleOpenCall;
  readonly body: LargeBody;
}

function send(model: keyof typeof bodies, place: ModelPlace): LargeCall {
  const body = bodies[model].get(place);
  if (body === undefined) throw new Error(`no body with its model ${place}`);
  const operation = place === 'after a file' ? 'audio/transcriptions' : 'chat/completions';
  const call = openCall(stage.url(), {
    path: `/zai/api/paas/v4/${operation}`,
    headers: {
      'content-type': body.contentType,
      authorization: 'Bearer practice-key',
      'x-strict-echo': '1',
      'x-label': place,
    },
    body: body.data,
  });
  return { call, body };
}

async function expectArrived({ call, body }: LargeCall): Promise<void> {
  expect(await call.answered).toBe(200);
  expect(await call.ended).toBe('complete');
  const { data, sha256 } = body;
  const echo: unknown = JSON.parse(call.text());
  expect(echo).toMatchObject({ bodyBytes: data.length, sha256 });
}

describe('a body of 20 MB', () => {
  it.each(PLACES)('with its model %s arrives whole, in the group of its model', async (place) => {
    const sent = send(MODEL, place);
    await expectArrived(sent);
    expect(sent.call.headers()['headgate-groups']).toBe('auto:zai/glm-5.1');
    expect(stage.upstream.stats().models[MODEL]).toMatchObject({ completed: 1, rejected429: 0 });
  });
});

it('20 calls of 20 MB that queue at once keep the memory in bounds, and all arrive whole', async () => {
  const holders = ['one', 'two'].map((label) =>
    openChat(stage.url(), {
      path: '/zai/api/paas/v4/chat/completions',
      model: QUEUED_MODEL,
      label,
      headers: { 'x-strict-silent-after-chunks': '1' },
    }),
  );
  for (const holder of holders) expect(await holder.answered).toBe(200);
  const before = await residentMiB(stage.workerdPid());
  const peak = await peakMiBDuring(stage.workerdPid(), async () => {
    const places = Array.from({ length: QUEUED }, (_, i) => PLACES[i % PLACES.length] ?? 'first');
    const calls = places.map((place) => send(QUEUED_MODEL, place));
    // Those whose model comes first stand in the queue, and of the others as many as the budget lets in.
    const stand = async (): Promise<boolean> => (await stage.admin.group('large')).queued >= 9;
    await until('they queue', stand, { everyMs: 50 });
    stage.upstream.resume();
    await Promise.all(calls.map(expectArrived));
  });
  const growth = Math.round(peak - before);
  console.log(`workerd: ${Math.round(before)} MiB, and at most ${growth} MiB more with the calls`);
  expect(stage.upstream.stats()).toMatchObject({ peak: 2, completed: QUEUED + 2, rejected429: 0 });
  expect(growth).toBeLessThan(GROWTH_MIB_MAX);
});
