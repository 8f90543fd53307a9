import { afterAll, afterEach, beforeEach, expect, onTestFinished, vi } from 'vitest';
import { openSockets } from '../../../src/call/answer/session.ts';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { NO_COOLDOWN, nothingLeaks, untilStatus } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { configure } from '../support/worker.ts';
import { closeAll, keyHash } from './client.ts';

export const REALTIME = '/x/v1/realtime?model=gpt-realtime';
export const LIVE =
  '/x/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';
export const RESPONSES = '/x/v1/responses';

/** A prompt whose answer stops after its first event until the upstream is resumed. */
export const HELD = '[[strict silent-after-chunks=1]]';

/** The gateway key of `keyedConfig`. */
export const KEY = 'hg_realtime_key_1';

/** The upstream of the running test. */
export let strict: Strict;

function configOf(name: string, fields: object, upstream: object): ConfigInput {
  const group = { name, match: { upstreams: ['x'] }, limits: { max_concurrency: 1 } };
  return {
    upstreams: [{ id: 'x', base_url: strict.url, ...upstream }],
    groups: [{ ...group, holds: NO_COOLDOWN, ...fields }],
  };
}

/** Configures the upstream `x` and a group `rt` with one slot. */
export function sessionConfig(fields: object = {}, upstream: object = {}): ConfigInput {
  return configOf('rt', fields, upstream);
}

/** Configures the upstream `x` for turns and a group `turns` with one slot. */
export function turnConfig(fields: object = {}, upstream: object = {}): ConfigInput {
  return configOf('turns', fields, { websocket: 'turns', ...upstream });
}

/** Configures sessions with the operator's key, a gateway key that may use their group, and another group that it may not. */
export async function keyedConfig({
  group = {},
  upstream = {},
  key = {},
}: Readonly<Record<string, object>> = {}): Promise<ConfigInput> {
  const auth = { secret: 'UPSTREAM_TEST_KEY' };
  const { upstreams, groups = [] } = sessionConfig(group, { auth, ...upstream });
  const other = { name: 'other', match: { upstreams: ['openai'] } };
  const own = groups.map(({ name }) => name);
  const keys = [{ id: 'k1', hash: await keyHash(KEY), groups: own, ...key }];
  return { upstreams, groups: [...groups, other], keys } as ConfigInput;
}

/** Starts an upstream before each test of a file that counts sessions itself and accepts one at a time. */
export function useSessions(): void {
  useUpstream('sessions', 'rt', 1, sessionConfig);
}

/** Starts an upstream before each test of a file that counts turns itself and accepts `limit` at a time. */
export function useTurns(limit = 1): void {
  useUpstream('turns', 'turns', limit, turnConfig);
}

/** Checks WebSockets that open during this test every 100 ms instead of every 5 s. */
export function checkSocketsOften(): void {
  const watch = openSockets.watch.bind(openSockets);
  const spy = vi
    .spyOn(openSockets, 'watch')
    .mockImplementation((socket, after) =>
      watch(socket, (ms, run) => after(Math.min(ms, 100), run)),
    );
  onTestFinished(() => spy.mockRestore());
}

/** Lets the turns of several upstreams end after a test. None of them may have had two at once. */
export async function endTurns(upstreams: readonly Strict[]): Promise<void> {
  await Promise.all(upstreams.map((one) => one.resume()));
  closeAll();
  const seen = await Promise.all(upstreams.map((one) => one.stats()));
  for (const { turns } of seen) expect(turns.peak).toBeLessThanOrEqual(1);
}

function useUpstream(
  counted: 'sessions' | 'turns',
  group: string,
  limit: number,
  config: () => ConfigInput,
): void {
  const limits = counted === 'sessions' ? { sessionLimit: limit } : { turnLimit: limit };
  beforeEach(async () => {
    strict = await strictScope(counted, { keepsRequests: true, ...limits });
    await configure(config());
  });
  afterEach(async () => {
    await strict.resume();
    closeAll();
    await untilStatus(group, { in_use: 0, queued: 0 });
    expect((await strict.stats())[counted].peak).toBeLessThanOrEqual(limit);
  });
  afterAll(nothingLeaks);
}
