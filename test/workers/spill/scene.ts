import { expect } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { keyHeader, keyOf } from '../order/scene.ts';
import { NO_COOLDOWN, untilStatus } from '../support/pool.ts';
import { strictScope, type Settings, type Strict } from '../support/strict.ts';
import {
  call,
  configure,
  open,
  until,
  type CallInit,
  type WorkerOpenCall,
} from '../support/worker.ts';

type SpillSceneGroup = NonNullable<ConfigInput['groups']>[number];
type SpillSceneUpstream = NonNullable<ConfigInput['upstreams']>[number];
type SpillSceneOnSaturated = Extract<NonNullable<SpillSceneGroup['on_saturated']>, object>;

export const CHAT = '/v1/chat/completions';

/** As the test pool binds `UPSTREAM_TEST_KEY`. */
export const SECRET = 'operator-secret-4711';

/** The gateway key that all calls bring: the operator's keys go out behind one only. */
export const KEY = keyHeader('team');

const LETTERS = ['a', 'b', 'c'] as const;

type Letter = (typeof LETTERS)[number];

let scenes = 0;

/** Upstreams `a`, `b` and `c` with a group each; calls to `a` may spill to the others. */
export interface SpillScene {
  readonly a: Strict;
  readonly b: Strict;
  readonly c: Strict;
  /** An upstream's id, and its group's name, by its letter. No other test of the file has the same. */
  name(letter: Letter): string;
}

interface SpillSceneSetup {
  /** Spill of calls to `a` that find no room; `spill_to` in letters. */
  readonly spill: Omit<SpillSceneOnSaturated, 'spill_to'> & {
    readonly spill_to: readonly (Letter | { upstream: Letter; model: string })[];
  };
  readonly settings?: Settings;
  /** Fields of the groups, which have 1 slot each. */
  readonly groups?: Partial<Record<Letter, Partial<SpillSceneGroup>>>;
  readonly upstreams?: Partial<Record<Letter, Partial<SpillSceneUpstream>>>;
  readonly dialect?: SpillSceneUpstream['dialect'];
  /** Upstreams that have the address of another. */
  readonly sharing?: Partial<Record<Letter, Letter>>;
}

export async function newScene(setup: SpillSceneSetup): Promise<SpillScene> {
  scenes += 1;
  const at = scenes;
  const name = (letter: Letter): string => `${letter}-${at}`;
  const { settings = {}, dialect = 'openai', sharing = {} } = setup;
  const [a, b, c] = await Promise.all([
    strictScope('a', settings),
    strictScope('b', settings),
    strictScope('c', settings),
  ]);
  const strict = { a, b, c };
  const { spill_to: letters, ...rest } = setup.spill;
  const spillTo = letters.map((to) =>
    typeof to === 'string' ? name(to) : { ...to, upstream: name(to.upstream) },
  );
  await configure({
    upstreams: LETTERS.map((letter) => ({
      id: name(letter),
      base_url: strict[sharing[letter] ?? letter].url,
      auth: { secret: 'UPSTREAM_TEST_KEY' },
      dialect,
      ...setup.upstreams?.[letter],
    })),
    groups: LETTERS.map((letter) => ({
      name: name(letter),
      match: { upstreams: [name(letter)] },
      limits: { max_concurrency: 1 },
      holds: NO_COOLDOWN,
      ...(letter === 'a' ? { on_saturated: { ...rest, spill_to: spillTo } } : {}),
      ...setup.groups?.[letter],
    })),
    keys: [await keyOf('team')],
  });
  return { ...strict, name };
}

/** Where a call to an upstream goes, by its letter. */
export function pathTo(scene: SpillScene, letter: Letter, path = CHAT): string {
  return `/${scene.name(letter)}${path}`;
}

/** A call to `a`, unless it says otherwise. */
export function ask(
  scene: SpillScene,
  label: string,
  init: CallInit = {},
  letter: Letter = 'a',
): WorkerOpenCall {
  const messages = [{ role: 'user', content: label }];
  const json = { model: 'm', stream: true, messages };
  const headers = { ...KEY, ...init.headers };
  return open(pathTo(scene, letter), label, { json, ...init, headers });
}

/** Holds the slot of an upstream until it is let go. */
export async function hold(scene: SpillScene, letter: Letter): Promise<WorkerOpenCall> {
  const headers = { 'x-strict-silent-after-chunks': '1' };
  const holder = ask(scene, `holds ${letter}`, { headers }, letter);
  await until(async () => expect((await scene[letter].stats()).inFlight).toBe(1));
  return holder;
}

/** Ends calls as their callers would by leaving, and waits until all slots are free. */
export async function letGo(scene: SpillScene, ...calls: readonly WorkerOpenCall[]): Promise<void> {
  for (const one of calls) {
    one.leave();
    await one.end;
  }
  for (const letter of LETTERS) await untilStatus(scene.name(letter), { in_use: 0, queued: 0 });
}

/** The letters of the upstreams that got a call. */
export async function heardBy(scene: SpillScene, label: string): Promise<string> {
  const all = await Promise.all(
    LETTERS.map(async (letter) => {
      const { arrivals } = await scene[letter].stats();
      return arrivals.filter((arrival) => arrival.label === label).map(() => letter);
    }),
  );
  return all.flat().join('');
}

/** The letters of the upstreams that have heard of a call to `a`, which one of them serves. */
export async function served(
  scene: SpillScene,
  label = 'call',
): Promise<{ readonly by: string; readonly headers: Headers }> {
  const one = ask(scene, label);
  const { status, headers } = await one.response;
  expect([status, await one.end]).toEqual([200, 'done']);
  return { by: await heardBy(scene, label), headers };
}

/** The same, where nobody cares for the answer. */
export async function servedBy(scene: SpillScene, label = 'call'): Promise<string> {
  return (await served(scene, label)).by;
}

/** Request that an upstream with `echo` got. */
export interface Echo {
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyBytes: number;
  readonly sha256: string;
}

/** Sends a body as it stands. */
export function post(
  path: string,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
) {
  const typed = { 'content-type': 'application/json', ...headers };
  return call(path, { method: 'POST', body, headers: typed });
}

export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return new Uint8Array(digest).toHex();
}
