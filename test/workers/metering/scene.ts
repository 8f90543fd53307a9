import type { LimitName } from '../../../src/core/words/settings.ts';
import { expect } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import type { Controls } from '../../../src/core/member.ts';
import { inside, NO_COOLDOWN } from '../support/pool.ts';
import { strictScope, type Settings, type Strict } from '../support/strict.ts';
import { call, configure, until, type CallInit } from '../support/worker.ts';

type MeteringSceneGroup = NonNullable<ConfigInput['groups']>[number];
type MeteringSceneUpstream = NonNullable<ConfigInput['upstreams']>[number];

export const CHAT = '/v1/chat/completions';

/** Limits that hold nobody up and count everything. */
export const COUNTING: MeteringSceneGroup['limits'] = {
  rpm: 10_000,
  itpm: 100_000_000,
  otpm: 100_000_000,
};

/** USD per million tokens, no two alike. */
export const PRICE = { input: 2, output: 10, cache_read: 0.5, cache_write: 2.5 };

/** Counts of a group since it exists, or in its current windows. */
export interface MeteringSceneCounted {
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly usd: number;
  readonly reservedUsd: number;
}

export const NOTHING: MeteringSceneCounted = {
  requests: 0,
  inputTokens: 0,
  outputTokens: 0,
  usd: 0,
  reservedUsd: 0,
};

/** Reads a group's controls where a reset would find them: in their row. */
async function controlsOf(group: string): Promise<Controls | null> {
  return inside(group, (_instance, state) => {
    const [row] = state.storage.sql
      .exec<{ value: string }>("SELECT value FROM memory WHERE key = 'controls'")
      .toArray();
    return row === undefined ? null : (JSON.parse(row.value) as Controls);
  });
}

function used({ rates }: Controls, name: LimitName): number {
  return (rates.windows[name]?.bins ?? []).reduce((sum, [, amount]) => sum + amount, 0);
}

/** Reads what was taken of a limit in its current window. */
export async function usedOf(group: string, name: LimitName): Promise<number> {
  const controls = await controlsOf(group);
  return controls === null ? 0 : used(controls, name);
}

export async function counted(group: string): Promise<MeteringSceneCounted> {
  const controls = await controlsOf(group);
  if (controls === null) return NOTHING;
  const { spend } = controls;
  return {
    requests: used(controls, 'rpm'),
    inputTokens: used(controls, 'itpm'),
    outputTokens: used(controls, 'otpm'),
    usd: Number(spend.total.usd.month.toFixed(9)),
    reservedUsd: Number(spend.reservedUsd.toFixed(9)),
  };
}

export function untilCounted(
  group: string,
  expected: Partial<MeteringSceneCounted>,
): Promise<void> {
  return until(async () => expect(await counted(group)).toMatchObject(expected));
}

let scenes = 0;

/** One upstream under several names, each of which speaks a dialect, and a group for all of them. */
export interface Scene {
  readonly strict: Strict;
  /** A name that no other test of the file uses: objects outlive their tests. */
  readonly group: string;
}

/** Custom upstreams, of whose providers nothing is known, at one address. */
export function dialects(
  strict: Strict,
  more: Partial<MeteringSceneUpstream> = {},
): MeteringSceneUpstream[] {
  const common = { base_url: strict.url, prices: { '*': PRICE }, ...more };
  return [
    { id: 'up', ...common },
    { id: 'claude', dialect: 'anthropic', ...common },
    { id: 'gem', dialect: 'gemini', ...common },
    { id: 'llama', dialect: 'ollama', ...common },
  ];
}

export async function newScene(
  settings: Settings = {},
  limits: MeteringSceneGroup['limits'] = COUNTING,
  upstream: Partial<MeteringSceneUpstream> = {},
  fields: Partial<MeteringSceneGroup> = {},
): Promise<Scene> {
  scenes += 1;
  const group = `metered-${scenes}`;
  const strict = await strictScope('metering', settings);
  await configure({
    upstreams: dialects(strict, upstream),
    groups: [{ name: group, match: { upstreams: ['*'] }, limits, holds: NO_COOLDOWN, ...fields }],
  });
  return { strict, group };
}

/** A chat call of which every byte is known. */
export function chatBody(text: string, more: Record<string, unknown> = {}): string {
  return JSON.stringify({ model: 'm', messages: [{ role: 'user', content: text }], ...more });
}

/** Sends a body as it stands, through Headgate. */
export function post(path: string, body: string, init: CallInit = {}): Promise<Response> {
  const headers = { 'content-type': 'application/json', ...init.headers };
  return call(path, { method: 'POST', body, ...init, headers });
}
