// Several groups that are saturated at once: nobody waits in a circle, no limit is exceeded. The upstream
// counts, over everything and for each model.
import { afterAll, beforeEach, expect, it } from 'vitest';
import { nothingLeaks, resetPool, untilWrittenEmpty } from '../support/pool.ts';
import { until, type WorkerOpenCall } from '../support/worker.ts';
import {
  allFree,
  ask,
  configureGroups,
  groupOf,
  keyHeader,
  keyOf,
  newScene,
  type OrderScene,
} from './scene.ts';

const MODELS = ['a', 'b', 'c'];
const TENANTS = ['acme', 'bolt'];

let scene: OrderScene;
let names: string[] = [];

/** Two slots for each of two models and each tenant, three for the upstream. */
beforeEach(async () => {
  scene = await newScene({
    limit: 3,
    limits: { a: 2, b: 2 },
    silentAfterChunks: null,
    chunks: 4,
    // Long enough that three are under way at once on a busy machine, too.
    chunkDelayMs: 25,
  });
  const ofModel = (model: string) =>
    groupOf(scene.name(`model-${model}`), 2, { match: { models: [model] } });
  const ofTenant = (id: string) => groupOf(scene.name(`of-${id}`), 2, { match: { keys: [id] } });
  const groups = [
    groupOf(scene.name('all'), 3),
    ...['a', 'b'].map(ofModel),
    ...TENANTS.map(ofTenant),
  ];
  names = groups.map(({ name }) => name);
  await configureGroups(scene, groups, await Promise.all(TENANTS.map((id) => keyOf(id))));
});

afterAll(nothingLeaks);

function callersAtOnce(count: number): WorkerOpenCall[] {
  return Array.from({ length: count }, (_, at) =>
    ask(`c${at}`, {
      model: MODELS[at % MODELS.length] ?? 'c',
      headers: keyHeader(TENANTS[Math.floor(at / 5) % TENANTS.length] ?? ''),
    }),
  );
}

async function peaks() {
  const { peak, rejected429, inFlight, models } = (await scene.strict.stats()) as Awaited<
    ReturnType<typeof scene.strict.stats>
  > & { readonly models: Readonly<Record<string, { readonly peak: number }>> };
  return { all: peak, a: models['a']?.peak, b: models['b']?.peak, rejected429, inFlight };
}

async function nothingIsLeft(): Promise<void> {
  await allFree(...names);
  for (const name of names) await untilWrittenEmpty(name);
}

it('several groups saturated at once: no deadlock, no limit exceeded, nothing leaked', async () => {
  const calls = callersAtOnce(60);
  const ends = await Promise.all(calls.map(({ end }) => end));
  expect(ends.filter((end) => end !== 'done')).toEqual([]);
  const { a, b, ...others } = await peaks();
  // The wide group is full all the time. Whether a narrow one is, too, depends on who holds its other
  // slot while waiting; `e2e/order/two-groups` has the exact peaks of all of them.
  expect(others).toEqual({ all: 3, rejected429: 0, inFlight: 0 });
  expect(Math.max(a ?? 0, b ?? 0)).toBeLessThanOrEqual(2);
  await nothingIsLeft();
});

it('callers that leave in the middle of taking several slots leave nothing behind', async () => {
  const calls = callersAtOnce(60);
  for (let round = 0; round < 20; round += 1) {
    const total = Math.min(25, round);
    await until(async () =>
      expect((await scene.strict.stats()).total).toBeGreaterThanOrEqual(total),
    );
    calls[round * 3]?.leave();
  }
  const ends = await Promise.all(calls.map(({ end }) => end));
  expect(ends.filter((_, at) => at % 3 !== 0)).toEqual(Array.from({ length: 40 }, () => 'done'));
  expect(await peaks()).toMatchObject({ rejected429: 0, inFlight: 0 });
  await nothingIsLeft();
});

it('resets of every group in the middle exceed no limit and lose no call', async () => {
  const calls = callersAtOnce(40);
  for (const [at, name] of names.entries()) {
    await until(async () => expect((await scene.strict.stats()).total).toBeGreaterThan(at * 4));
    await resetPool(name);
  }
  const ends = await Promise.all(calls.map(({ end }) => end));
  expect(ends.filter((end) => end !== 'done')).toEqual([]);
  const { all, a, b, ...others } = await peaks();
  expect(others).toEqual({ rejected429: 0, inFlight: 0 });
  expect(all).toBeLessThanOrEqual(3);
  expect(Math.max(a ?? 0, b ?? 0)).toBeLessThanOrEqual(2);
  await nothingIsLeft();
});
