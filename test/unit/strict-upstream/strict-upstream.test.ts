import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';

/**
 * Tests of the upstream that the other tests believe: its counts and its refusals. Each test takes a scope of its
 * own.
 */
let upstream: StrictUpstream;

beforeAll(async () => {
  upstream = await startStrictUpstream();
});

afterAll(() => upstream.close());

type StrictUpstreamHeaders = Readonly<Record<string, string>>;

function chat(
  scope: string,
  headers: StrictUpstreamHeaders = {},
  model = 'gpt-4o',
): Promise<Response> {
  return fetch(`${upstream.scopeUrl(scope)}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'one two' }] }),
  });
}

async function statusOf(scope: string, headers: StrictUpstreamHeaders = {}): Promise<number> {
  const response = await chat(scope, headers, 'm');
  await response.arrayBuffer();
  return response.status;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await delay(2);
}

describe('what it counts', () => {
  it('admits exactly its limit for as long as the streams last', async () => {
    upstream.configure({ limit: 3, silentAfterChunks: 2 }, 'limit');
    const held = await Promise.all([chat('limit'), chat('limit'), chat('limit')]);
    const refused = await chat('limit');
    expect(held.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(refused.status).toBe(429);
    expect(JSON.stringify(await refused.json())).toContain('concurrent');
    expect(upstream.stats('limit')).toMatchObject({ inFlight: 3, admitted: 3, rejected429: 1 });
    upstream.resume('limit');
    await Promise.all(held.map((response) => response.text()));
    await until(() => upstream.stats('limit').inFlight === 0);
    expect(upstream.stats('limit')).toMatchObject({ peak: 4, completed: 3, admitted: 0, total: 4 });
  });

  it('counts a client as gone before the one that came after it, however late it hears of both', async () => {
    upstream.configure({ silentAfterChunks: 1 }, 'late');
    const call =
      'POST /scope/late/v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}';
    const open = async (): Promise<Socket> => {
      const socket = connect(upstream.port, '127.0.0.1');
      await once(socket, 'connect');
      return socket.resume();
    };
    const [first, second] = [await open(), await open()];
    first.write(call);
    await until(() => upstream.stats('late').inFlight === 1);
    // Both reach the server in the same turn of its loop.
    first.destroy();
    second.write(call);
    await until(() => upstream.stats('late').total === 2);
    expect(upstream.stats('late')).toMatchObject({ inFlight: 1, peak: 1, aborted: 1 });
    second.destroy();
    await until(() => upstream.stats('late').inFlight === 0);
  });

  it('holds each account to its limit, whatever keys it comes with, and knows no others', async () => {
    const accounts = { 'sk-1': 'mine', 'sk-2': 'mine', 'sk-3': 'yours' };
    const accountHeader = 'x-org';
    upstream.configure({ accounts, accountLimit: 1, accountHeader, silentAfterChunks: 0 }, 'each');
    const with_ = (key: string): StrictUpstreamHeaders => ({ authorization: `Bearer ${key}` });
    const answers: Response[] = [];
    for (const key of ['sk-1', 'sk-2', 'sk-3', 'sk-4']) {
      answers.push(await chat('each', with_(key)));
    }
    expect(answers.map(({ status }) => status)).toEqual([200, 429, 200, 401]);
    const said = answers.map(({ headers }) => headers.get('x-org'));
    expect(said).toEqual(['mine', 'mine', 'yours', null]);
    expect(upstream.stats('each').accounts).toMatchObject({
      mine: { admitted: 1, rejected429: 1, total: 2 },
      yours: { admitted: 1, rejected429: 0, total: 1 },
    });
  });

  it('holds each model to its own limit', async () => {
    upstream.configure({ limits: { 'glm-5.1': 1, 'glm-4.6': 2 }, silentAfterChunks: 0 }, 'models');
    const models = ['glm-5.1', 'glm-5.1', 'glm-4.6', 'glm-4.6', 'glm-4.6', 'glm-9'];
    const answers: Response[] = [];
    for (const model of models) answers.push(await chat('models', {}, model));
    expect(answers.map(({ status }) => status)).toEqual([200, 429, 200, 200, 429, 200]);
    const stats = upstream.stats('models');
    expect(stats.models['glm-5.1']).toMatchObject({ admitted: 1, rejected429: 1 });
    expect(stats.models['glm-4.6']).toMatchObject({ admitted: 2, rejected429: 1 });
    expect(stats).toMatchObject({ admitted: 4, rejected429: 2 });
    upstream.resume('models');
  });

  it('sees a client that leaves a silent stream, and lags when it is told to', async () => {
    upstream.configure({ silentAfterChunks: 1, accountingLagMs: 150 }, 'leave');
    const leaver = new AbortController();
    const url = `${upstream.scopeUrl('leave')}/v1/messages`;
    const body = JSON.stringify({ model: 'c', stream: true, messages: [] });
    await fetch(url, { method: 'POST', body, signal: leaver.signal });
    leaver.abort();
    await until(() => upstream.stats('leave').aborted === 1);
    expect(upstream.stats('leave')).toMatchObject({ inFlight: 0, admitted: 1, completed: 0 });
    await until(() => upstream.stats('leave').admitted === 0);
  });

  it('lists arrivals in order, with model and label', async () => {
    await (await chat('arrivals', { 'x-label': 'first' }, 'a')).text();
    await (await chat('arrivals', {}, 'b')).text();
    const seen = upstream.stats('arrivals').arrivals.map(({ model, label }) => [model, label]);
    expect(seen).toEqual([
      ['a', 'first'],
      ['b', 'one two'],
    ]);
  });

  it('does not count model lists, token counts and HEAD', async () => {
    const url = upstream.scopeUrl('free');
    const list = await fetch(`${url}/v1/models`);
    const head = await fetch(`${url}/v1/models`, { method: 'HEAD' });
    const count = await fetch(`${url}/v1/messages/count_tokens`, { method: 'POST', body: '{}' });
    expect([list.status, head.status, count.status]).toEqual([200, 200, 200]);
    expect(head.headers.get('content-length')).toBe(list.headers.get('content-length'));
    expect(upstream.stats('free')).toMatchObject({ total: 0, uncounted: 3 });
  });

  it('copes with a thousand calls at once', async () => {
    upstream.configure({ silentAfterChunks: 1 }, 'thousand');
    const calls = Array.from({ length: 1_000 }, () => chat('thousand').then((r) => r.text()));
    await until(() => upstream.stats('thousand').inFlight === 1_000);
    upstream.resume('thousand');
    expect(new Set(await Promise.all(calls)).size).toBe(1);
    expect(upstream.stats('thousand')).toMatchObject({ peak: 1_000, completed: 1_000 });
  });
});

describe('what it refuses', () => {
  it('is what is over its rates, and says how long to wait', async () => {
    upstream.configure({ rates: { m: { rpm: 2, windowMs: 60_000 } }, refuseAs: 'azure' }, 'rpm');
    const statuses = [await statusOf('rpm'), await statusOf('rpm')];
    const refused = await chat('rpm', {}, 'm');
    expect([...statuses, refused.status]).toEqual([200, 200, 429]);
    expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('0');
    expect(Number(refused.headers.get('retry-after-ms'))).toBeGreaterThan(0);
    const stats = upstream.stats('rpm');
    expect(stats.models['m']).toMatchObject({ granted: 2, rejected429: 1 });
    expect(stats.refusals.map(({ kind, model }) => [kind, model])).toEqual([['requests', 'm']]);
    expect(stats.arrivals.map(({ refusedAs }) => refusedAs)).toEqual([null, null, 'requests']);
  });

  it('is what is over its tokens, of prompts and of what went out of answers', async () => {
    upstream.configure({ rates: { '*': { tpm: 100 } } }, 'tpm');
    const large = { 'x-strict-input-tokens': '50', 'x-strict-output-tokens': '25' };
    const small = { 'x-strict-input-tokens': '25' };
    expect([await statusOf('tpm', large), await statusOf('tpm', large)]).toEqual([200, 429]);
    expect(await statusOf('tpm', small)).toBe(200);
    expect(upstream.stats('tpm')).toMatchObject({
      countedTokens: 105,
      inputTokens: 75,
      refused: { tokens: 1 },
    });
  });

  it('takes no slot, however long its own count lags', async () => {
    upstream.configure({ limit: 1, accountingLagMs: 60_000 }, 'slot');
    upstream.failNext(1, 'requests', 'slot');
    expect([await statusOf('slot'), await statusOf('slot')]).toEqual([429, 200]);
    expect(upstream.stats('slot')).toMatchObject({ granted: 1, admitted: 1 });
  });

  it('goes by a limit that has just been changed, also for a model', async () => {
    upstream.configure({ limit: 1, limits: { m: 1 }, silentAfterChunks: 0 }, 'change');
    await chat('change', {}, 'm');
    expect(await statusOf('change')).toBe(429);
    upstream.configure({ limit: 2, limits: { m: 2 } }, 'change');
    await chat('change', {}, 'm');
    upstream.configure({ limits: { m: 1 } }, 'change');
    expect(await statusOf('change')).toBe(429);
    expect(upstream.stats('change')).toMatchObject({ admitted: 2, refused: { concurrency: 2 } });
    upstream.resume('change');
  });
});

it('gives equal bytes for equal requests', async () => {
  const texts = [await chat('bytes'), await chat('bytes')].map((response) => response.text());
  const [first, second] = await Promise.all(texts);
  expect(first).toContain('[DONE]');
  expect(second).toBe(first);
});
