import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { BODY_MIB_MIN } from '../../../src/upstream/body/body-budget.ts';
import type { LargeBody, ModelPlace } from '../support/lifecycle-bodies.ts';
import { largeBody } from '../support/lifecycle-bodies.ts';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openCall, openChat } from '../support/lifecycle-call.ts';
import { isolateMemory } from '../support/lifecycle-isolate.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

/**
 * Calls that wait, each with a body of 200 KB, as agents send them: their group depends on the model, so that it is
 * looked for, and nobody knows beforehand whether the call will have to wait.
 */
const WAITING = 1_000;
const BODY_BYTES = 200_000;

/**
 * Maximum that the isolate of the Worker may hold meanwhile, of the 128 MB that it has on Cloudflare: objects and
 * buffers, after a collection. Measured: 34 to 47 MB, and 218 where small bodies were not counted.
 */
const ISOLATE_MB_MAX = 100;

/** A thousand calls with 200 MB in all take their time where the machine is busy. */
const LONG = { timeout: 600_000 };
const ARRIVE_WITHIN_MS = 400_000;

/** Longer than any call waits with a body that there is no room to wait with. */
const BEYOND_PATIENCE_MS = 3_000;

const PATH = '/practice/v1/chat/completions';

let stage: LifecycleStage;

/** Starts with what bodies may hold; undefined: what `serve` lets them hold by default. */
async function start(bodyMemoryMib?: number): Promise<void> {
  const group = (model: string, limit: number) => ({
    name: model,
    match: { models: [model] },
    limits: { max_concurrency: limit },
    queue: { max_length: 5_000 },
    holds: NO_HOLDS,
  });
  stage = await startStage({
    // The objects are in the isolate of the first Worker, and the calls go to the second.
    workers: 2,
    inspector: true,
    ...(bodyMemoryMib !== undefined && { bodyMemoryMib }),
    config: ({ url }) => ({
      upstreams: [{ id: 'practice', base_url: url, dialect: 'openai' }],
      groups: [group('full', 1), group('little', 1), group('free', 10)],
    }),
  });
}

afterEach(() => stage.close());

const worker = (): string => stage.urls()[1] ?? '';

/** Takes the only slot of a group until the upstream resumes. */
async function hold(model: string): Promise<void> {
  const headers = { 'x-strict-silent-after-chunks': '1' };
  const holder = openChat(worker(), { model, label: `holder of ${model}`, headers });
  expect(await holder.answered).toBe(200);
}

function send({ contentType, data }: LargeBody): LifecycleOpenCall {
  const headers = {
    'content-type': contentType,
    authorization: 'Bearer practice-key',
    'x-strict-echo': '1',
  };
  return openCall(worker(), { path: PATH, headers, body: data });
}

async function expectArrived(call: LifecycleOpenCall, { data, sha256 }: LargeBody): Promise<void> {
  expect([await call.answered, call.headers()['headgate-reason']]).toEqual([200, undefined]);
  expect(await call.ended).toBe('complete');
  expect(JSON.parse(call.text())).toMatchObject({ bodyBytes: data.length, sha256 });
}

function expectCrowded(call: LifecycleOpenCall): void {
  const { 'headgate-reason': reason, 'retry-after': retryAfter } = call.headers();
  expect(reason).toBe('too_many_bytes_waiting');
  expect(Number(retryAfter)).toBeGreaterThanOrEqual(2);
}

/** Waits until each of the calls waits for its slot, or is refused. */
function untilThere(refused: readonly LifecycleOpenCall[]): Promise<void> {
  const isThere = async (): Promise<boolean> =>
    (await stage.admin.group('full')).queued + refused.length === WAITING;
  return until('all wait or are refused', isThere, {
    everyMs: 250,
    withinMs: ARRIVE_WITHIN_MS,
  });
}

/** Megabytes that the Worker's isolate holds. */
async function heldMb(): Promise<number> {
  const { heapMiB, buffersMiB } = await isolateMemory({
    inspectorPort: stage.inspectorPort() ?? 0,
    service: 'headgate1',
    url: worker(),
  });
  return (heapMiB + buffersMiB) * 1.048_576;
}

/** Tells of each call that is answered with an error. */
function refusedOf(calls: readonly LifecycleOpenCall[]): readonly LifecycleOpenCall[] {
  const refused: LifecycleOpenCall[] = [];
  for (const call of calls) {
    call.answered.then(
      (status) => status !== 200 && refused.push(call),
      () => undefined,
    );
  }
  return refused;
}

it.each<[ModelPlace, { readonly waitingMin: number }]>([
  // Read no further than their model, all of them can wait.
  ['first', { waitingMin: WAITING }],
  // Of those that must be read to their end, as many as there is room for.
  ['last', { waitingMin: 100 }],
])(
  'on Cloudflare 1,000 calls wait with their model %s: the isolate stays within its memory, and other groups are served',
  LONG,
  async (place, { waitingMin }) => {
    await start(BODY_MIB_MIN);
    const body = largeBody(place, 'full', BODY_BYTES);
    const little = largeBody('last', 'little', BODY_BYTES);
    const free = largeBody('last', 'free', BODY_BYTES);
    const large = largeBody('last', 'free', 20_000_000);
    await Promise.all([hold('full'), hold('little')]);
    const before = await heldMb();

    const calls = Array.from({ length: WAITING }, () => send(body));
    const refused = refusedOf(calls);
    // In the midst of them.
    await expectArrived(send(free), free);
    await untilThere(refused);
    const held = await heldMb();
    console.log(
      `isolate: ${Math.round(before)} MB, with the calls ${Math.round(held)} MB; ${refused.length} refused`,
    );
    expect(held).toBeLessThan(ISOLATE_MB_MAX);
    await Promise.all([expectArrived(send(free), free), expectArrived(send(large), large)]);
    const others = Array.from({ length: 3 }, () => send(little));
    await stage.admin.untilGroup('little', { queued: 3 });
    await delay(BEYOND_PATIENCE_MS);
    expect((await stage.admin.group('little')).queued).toBe(3);

    await stage.admin.setLimit('full', 20);
    stage.upstream.resume();
    await Promise.all(others.map((call) => expectArrived(call, little)));
    await Promise.all(calls.map((call) => call.answered));
    const waited = calls.filter((call) => !refused.includes(call));
    expect(waited.length).toBeGreaterThanOrEqual(waitingMin);
    await Promise.all(waited.map((call) => expectArrived(call, body)));
    for (const call of refused) expectCrowded(call);

    await stage.admin.untilIdle();
    const isFree = async (): Promise<boolean> => (await heldMb()) < before + 10;
    await until('the isolate holds no more than before', isFree, {
      everyMs: 500,
      withinMs: ARRIVE_WITHIN_MS,
    });
    // Nobody is refused any more.
    await expectArrived(send(body), body);
  },
);

it(
  'where Headgate hosts itself 1,000 calls wait with their model last, and all are served',
  LONG,
  async () => {
    await start();
    const body = largeBody('last', 'full', BODY_BYTES);
    await hold('full');
    const calls = Array.from({ length: WAITING }, () => send(body));
    const refused = refusedOf(calls);
    await untilThere(refused);
    await delay(BEYOND_PATIENCE_MS);
    console.log(`isolate: with the calls ${Math.round(await heldMb())} MB`);
    expect(refused.length).toBe(0);
    expect((await stage.admin.group('full')).queued).toBe(WAITING);

    await stage.admin.setLimit('full', 20);
    stage.upstream.resume();
    await Promise.all(calls.map((call) => expectArrived(call, body)));
  },
);
