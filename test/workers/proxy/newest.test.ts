// What a Worker does whose copy of the configuration is older than the directory's. The directory is
// written behind its back, as another isolate would, and counts who asks it.
import { beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { env } from '../support/worker.ts';
import { startIsolate, writeElsewhere, type ProxyIsolate } from './isolate.ts';

let strict: Strict;
let isolate: ProxyIsolate;

beforeAll(async () => {
  strict = await strictScope('newest', { chunks: 1 });
});

beforeEach(async () => {
  isolate = await startIsolate();
});

/** Answers with the status. */
async function ask(...of: Parameters<ProxyIsolate['send']>): Promise<number> {
  return (await isolate.send(...of)).status;
}

/** Answers with what the answer says, in JSON. */
async function answer(...of: Parameters<ProxyIsolate['send']>): Promise<unknown> {
  return JSON.parse((await isolate.send(...of)).text) as unknown;
}

async function sha256(bytes: Uint8Array): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)).toHex();
}

const upstreams = (...ids: string[]): object => ({
  upstreams: ids.map((id) => ({ id, base_url: strict.url })),
});

const KEYS = [{ id: 'team', hash: `sha256:${'0'.repeat(64)}` }];

/** Has the upstream answer with what it got. */
const ECHO = { 'x-strict-echo': '1' };

const CHAT = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'newest' }] };

it('the empty configuration of the beginning is kept for a second only', async () => {
  expect((await directoryOf(env).snapshot(null))?.version).toBe(0);
  expect(await ask('/v1/models')).toBe(200);
  await writeElsewhere({ keys: KEYS });
  const now = Date.now.bind(Date);
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 1_000);
  expect(await ask('/v1/models')).toBe(401);
  clock.mockRestore();
});

it('an upstream that was configured a moment ago elsewhere is found', async () => {
  await writeElsewhere(upstreams('first'));
  expect(await ask('/first/v1/chat/completions', CHAT)).toBe(200);
  await writeElsewhere(upstreams('first', 'second'));
  expect(await ask('/second/v1/chat/completions', CHAT)).toBe(200);
});

it('a key that is wanted since a moment ago is asked for there', async () => {
  await writeElsewhere(upstreams('first'));
  expect(await ask('/first/v1/chat/completions', CHAT)).toBe(200);
  await writeElsewhere({ ...upstreams('first', 'third'), keys: KEYS });
  expect(await ask('/third/v1/chat/completions', CHAT)).toBe(401);
});

it.each([
  ['small', 10],
  // More than is read to find the model: the rest of it comes from the caller.
  ['large', 2_000_000],
])('a %s body that was read is routed by the newer one, byte for byte', async (_, bytes) => {
  const id = `late-${bytes}`;
  await writeElsewhere(upstreams('first'));
  expect(await ask('/first/v1/chat/completions', CHAT)).toBe(200);
  await writeElsewhere(upstreams('first', id));
  const messages = [{ role: 'user', content: 'newest '.repeat(bytes / 5) }];
  const call = { model: `${id}/gpt-4o-mini`, messages };
  const echoed = await answer('/v1/chat/completions', call, { headers: ECHO });
  const sent = new TextEncoder().encode(JSON.stringify({ ...call, model: 'gpt-4o-mini' }));
  expect(echoed).toMatchObject({ bodyBytes: sent.length, sha256: await sha256(sent) });
});

it('a body that was read by an older one is asked for its key by the newer one', async () => {
  await writeElsewhere(upstreams('first'));
  expect(await ask('/first/v1/chat/completions', CHAT)).toBe(200);
  await writeElsewhere({ ...upstreams('first', 'fifth'), keys: KEYS });
  const call = { ...CHAT, model: 'fifth/gpt-4o-mini' };
  expect(await ask('/v1/chat/completions', call)).toBe(401);
});

it.each([
  ['whether a stream is asked for', { queue: { keepalive: { after_ms: 0 } } }],
  ['which model is the true one', { track_usage: 'always' }],
])('a body in which nobody looked for %s is sent again by its caller', async (_, group) => {
  const id = `unsaid-${Object.keys(group)[0]}`.replace('_', '-');
  await writeElsewhere(upstreams('first'));
  expect(await ask('/first/v1/chat/completions', CHAT)).toBe(200);
  const groups = [{ name: 'wants-more', match: { upstreams: [id] }, ...group }];
  await writeElsewhere({ ...upstreams('first', id), groups });
  const call = { ...CHAT, model: `${id}/gpt-4o-mini` };
  expect(await answer('/v1/chat/completions', call, {})).toMatchObject({
    error: { message: expect.stringContaining('changed while the request was being read') },
  });
  expect(await ask('/v1/chat/completions', call)).toBe(200);
});

it('a model that is nowhere is refused by the newer one too', async () => {
  await writeElsewhere(upstreams('first'));
  expect(await ask('/first/v1/chat/completions', CHAT)).toBe(200);
  await writeElsewhere(upstreams('first', 'sixth'));
  const call = { ...CHAT, model: 'nobody/gpt-4o-mini' };
  expect(await ask('/v1/chat/completions', call)).toBe(404);
});

it('upstreams that are nowhere make the directory no work', async () => {
  await writeElsewhere(upstreams('first'));
  expect(await ask('/first/v1/chat/completions', CHAT)).toBe(200);
  const before = isolate.asked();
  const startedAt = performance.now();
  for (let round = 0; round < 5; round += 1) {
    const calls = Array.from({ length: 40 }, (_, i) => ask(`/nowhere-${round}-${i}/v1`));
    const answers = await Promise.all(calls);
    expect(new Set(answers)).toEqual(new Set([404]));
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  // Once a second for these, and once in two seconds for the copy's own sake.
  expect(isolate.asked() - before).toBeLessThanOrEqual(2 * Math.ceil(seconds) + 1);
});

it('a Worker that has made a version routes its next call by it', async () => {
  await writeElsewhere(upstreams('first'));
  expect(await ask('/first/v1/chat/completions', CHAT)).toBe(200);
  const headers = {
    authorization: 'Bearer test-admin-token',
    'content-type': 'application/json',
  };
  const closed = { ...upstreams('first'), keys: KEYS };
  expect(await ask('/admin/api/config', closed, { method: 'PUT', headers })).toBe(200);
  expect(await ask('/first/v1/chat/completions', CHAT)).toBe(401);
});

it('a version that it has made and cannot get is asked for now and then, and not by every call', async () => {
  await writeElsewhere(upstreams('first'));
  expect(await ask('/first/v1/chat/completions', CHAT)).toBe(200);
  const headers = {
    authorization: 'Bearer test-admin-token',
    'content-type': 'application/json',
  };
  const closed = { ...upstreams('first'), keys: KEYS };
  expect(await ask('/admin/api/config', closed, { method: 'PUT', headers })).toBe(200);
  isolate.directory('fails');
  const before = isolate.asked();
  const startedAt = performance.now();
  const call = async (at: number): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 50 * at));
    const init = { headers: { 'headgate-max-wait': '0' } };
    const status = await ask('/first/v1/chat/completions', CHAT, init);
    // Its pool may have heard of the key that is wanted now, and then nothing goes by the older version.
    expect([200, 503]).toContain(status);
  };
  await Promise.all(Array.from({ length: 40 }, (_, at) => call(at)));
  const seconds = (performance.now() - startedAt) / 1_000;
  // Each of them would ask about four times in the second that it waits.
  expect(isolate.asked() - before).toBeLessThanOrEqual(2 + Math.ceil(10 * seconds));
});
