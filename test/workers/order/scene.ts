import { afterAll, beforeEach, expect } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { NO_COOLDOWN, nothingLeaks, pool, untilStatus } from '../support/pool.ts';
import { strictScope, type Settings, type Strict } from '../support/strict.ts';
import { configure, open, until, type WorkerOpenCall } from '../support/worker.ts';

export const CHAT = '/up/v1/chat/completions';

type OrderSceneGroup = NonNullable<ConfigInput['groups']>[number];
type OrderSceneKey = NonNullable<ConfigInput['keys']>[number];

let scenes = 0;

/** An upstream whose streams go silent after a chunk until they are resumed, and names for groups. */
export interface OrderScene {
  readonly strict: Strict;
  /** A name that no other test of the file uses: objects outlive their tests. */
  name(base: string): string;
}

export async function newScene(settings: Settings = {}): Promise<OrderScene> {
  scenes += 1;
  const at = scenes;
  const all: Settings = { silentAfterChunks: 1, ...settings };
  const strict = await strictScope('order', all);
  return { strict, name: (base) => `${base}-${at}` };
}

/** The scene of the test that runs, and a name for its group. */
export let scene: OrderScene;
export let group: string;

/** Gives each test of a file a scene of its own, with a name for a group, and looks at its end whether anything is left. */
export function useScenes(base: string): void {
  beforeEach(async () => {
    scene = await newScene();
    group = scene.name(base);
  });
  afterAll(nothingLeaks);
}

/** A group of the one upstream, unless it says otherwise. */
export function groupOf(
  name: string,
  slots: number,
  fields: Partial<OrderSceneGroup> = {},
): OrderSceneGroup {
  const { limits, queue, ...rest } = fields;
  return {
    name,
    match: { upstreams: ['up'] },
    limits: { max_concurrency: slots, ...limits },
    holds: NO_COOLDOWN,
    queue: { lane_max: 'high', ...queue },
    ...rest,
  };
}

export async function configureGroups(
  { strict }: OrderScene,
  groups: readonly OrderSceneGroup[],
  keys: readonly OrderSceneKey[] = [],
): Promise<void> {
  await configure({
    upstreams: [{ id: 'up', base_url: strict.url }],
    groups: [...groups],
    keys: [...keys],
  });
}

/** The gateway key of a tenant, as the tenant sends it. */
export function keyHeader(id: string): Record<string, string> {
  return { 'headgate-key': `hg_key-of-${id}` };
}

export async function keyOf(
  id: string,
  fields: Partial<OrderSceneKey> = {},
): Promise<OrderSceneKey> {
  const bytes = new TextEncoder().encode(`hg_key-of-${id}`);
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return { id, hash: `sha256:${digest.toHex()}`, ...fields };
}

interface OrderSceneReply {
  readonly model?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
}

/** A streamed chat call, for whatever model. */
export function ask(
  label: string,
  { model = 'm', path = CHAT, headers = {} }: OrderSceneReply = {},
) {
  const messages = [{ role: 'user', content: label }];
  return open(path, label, { json: { model, stream: true, messages }, headers });
}

/** Starts a call and waits until it stands in a group's queue behind those who wait there already. */
export async function queued(
  name: string,
  label: string,
  said: OrderSceneReply = {},
): Promise<WorkerOpenCall> {
  const before = (await pool(name).status()).queued;
  const one = ask(label, said);
  await untilStatus(name, { queued: before + 1 });
  return one;
}

/** Starts a call and waits until it streams. */
export async function streaming(
  { strict }: OrderScene,
  label: string,
  said: OrderSceneReply = {},
): Promise<WorkerOpenCall> {
  const { inFlight } = await strict.stats();
  const one = ask(label, said);
  await untilInFlight(strict, inFlight + 1);
  return one;
}

export function untilInFlight(strict: Strict, inFlight: number): Promise<void> {
  return until(async () => expect((await strict.stats()).inFlight).toBe(inFlight));
}

/** Lets everything stream to its end, also what goes silent only in a moment. */
export async function finish(
  { strict }: OrderScene,
  calls: readonly WorkerOpenCall[],
): Promise<void> {
  await strict.configure({ silentAfterChunks: null });
  let ends: readonly string[] | null = null;
  const all = Promise.all(calls.map(({ end }) => end)).then((known) => {
    ends = known;
  });
  await until(async () => {
    await strict.resume();
    expect(ends).toEqual(calls.map(() => 'done'));
  });
  await all;
}

/** The labels of the calls that the upstream got, in the order in which they arrived there. */
export async function arrived({ strict }: OrderScene): Promise<(string | null)[]> {
  return (await strict.stats()).arrivals.map(({ label }) => label);
}

/** Reads what a caller is told that was refused. */
export async function refusal(call: WorkerOpenCall | Promise<Response>) {
  const response = await ('response' in call ? call.response : call);
  return {
    status: response.status,
    reason: response.headers.get('headgate-reason'),
    retryAfterS: Number(response.headers.get('retry-after')),
  };
}

/** Fails unless nothing is held in the groups, and nobody waits there. */
export async function allFree(...groups: readonly string[]): Promise<void> {
  for (const name of groups) await untilStatus(name, { in_use: 0, cooling: 0, queued: 0 });
}
