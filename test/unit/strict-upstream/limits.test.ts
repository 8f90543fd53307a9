import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import type { StrictFailure } from '../../strict-upstream/failures.ts';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';

/** Rate limits, refusals and failures of the strict upstream, over the wire. */

let upstream: StrictUpstream;

beforeAll(async () => {
  upstream = await startStrictUpstream();
});

afterAll(() => upstream.close());

function chat(scope: string, content = 'hello', extra: object = {}): Promise<Response> {
  return fetch(`${upstream.scopeUrl(scope)}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content }], ...extra }),
  });
}

async function statusOf(...asked: Parameters<typeof chat>): Promise<number> {
  const response = await chat(...asked);
  await response.arrayBuffer();
  return response.status;
}

describe('rate limits', () => {
  it('refuse what is over them, say how long, and keep it', async () => {
    const windowMs = 400;
    upstream.configure({ rates: { m: { rpm: 2, windowMs } }, refuseAs: 'azure' }, 'rpm');
    const statuses = [await statusOf('rpm'), await statusOf('rpm')];
    const refused = await chat('rpm');
    expect([...statuses, refused.status]).toEqual([200, 200, 429]);
    expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('0');
    const waitMs = Number(refused.headers.get('retry-after-ms'));
    expect(waitMs).toBeGreaterThan(0);
    expect(waitMs).toBeLessThanOrEqual(windowMs);
    await delay(waitMs + 1);
    expect(await statusOf('rpm')).toBe(200);
    const stats = upstream.stats('rpm');
    expect(stats.models['m']).toMatchObject({
      granted: 3,
      rejected429: 1,
      refused: { requests: 1 },
    });
    expect(stats.refusals.map(({ kind, model }) => [kind, model])).toEqual([['requests', 'm']]);
    const at = stats.arrivals.map((arrival) => arrival.at);
    expect(stats.refusals[0]?.at).toBeGreaterThanOrEqual(at[2] ?? Infinity);
    expect(stats.refusals[0]?.at).toBeLessThan(at[3] ?? 0);
    expect(stats.arrivals.map(({ refusedAs }) => refusedAs)).toEqual([
      null,
      null,
      'requests',
      null,
    ]);
  });

  it('count tokens of prompts and, while they go out, of answers', async () => {
    upstream.configure({ rates: { '*': { tpm: 100 } } }, 'tpm');
    const sizes = '[[strict input-tokens=50 output-tokens=25]]';
    expect([await statusOf('tpm', sizes), await statusOf('tpm', sizes)]).toEqual([200, 429]);
    expect(await statusOf('tpm', '[[strict input-tokens=25]]', { max_tokens: 900 })).toBe(200);
    const stats = upstream.stats('tpm');
    expect(stats).toMatchObject({ countedTokens: 105, inputTokens: 75, refused: { tokens: 1 } });
  });

  it('count the maximum of the answer where the upstream does', async () => {
    upstream.configure({ rates: { m: { tpm: 100, countsOutput: 'max_tokens' } } }, 'max');
    const text = '[[strict input-tokens=10]]';
    expect(await statusOf('max', text, { max_completion_tokens: 45, n: 2 })).toBe(200);
    expect(await statusOf('max', text, { max_tokens: 1 })).toBe(429);
    expect(upstream.stats('max')).toMatchObject({ countedTokens: 100, outputTokens: 5 });
  });

  it('give back at the end of a call what was reserved for its answer', async () => {
    upstream.configure({ rates: { m: { tpm: 100, countsOutput: 'reserved' } } }, 'reserved');
    const text = '[[strict input-tokens=10 output-tokens=5]]';
    expect(await statusOf('reserved', text, { max_tokens: 90 })).toBe(200);
    expect(await statusOf('reserved', text, { max_tokens: 75 })).toBe(200);
    expect(upstream.stats('reserved').countedTokens).toBe(30);
  });

  it('count refused calls where the upstream does, until they are reset', async () => {
    upstream.configure({ rates: { m: { rpm: 2, countsRefused: true } } }, 'refused');
    upstream.failNext(1, 'overload', 'refused');
    const statuses = [
      await statusOf('refused'),
      await statusOf('refused'),
      await statusOf('refused'),
    ];
    expect(statuses).toEqual([503, 200, 429]);
    upstream.reset('refused');
    expect(await statusOf('refused')).toBe(200);
  });

  it('give a refused call its slot back at once', async () => {
    upstream.configure({ limit: 1, rates: { m: { rpm: 1 } }, accountingLagMs: 60_000 }, 'slot');
    upstream.failNext(1, 'requests', 'slot');
    expect(await statusOf('slot')).toBe(429);
    expect(await statusOf('slot')).toBe(200);
    expect(upstream.stats('slot')).toMatchObject({ granted: 1, admitted: 1 });
  });
});

describe('limits of concurrency', () => {
  it('change at once, also for a model', async () => {
    upstream.configure({ limit: 1, limits: { m: 1 }, silentAfterChunks: 0 }, 'change');
    await chat('change', 'a', { stream: true });
    expect(await statusOf('change')).toBe(429);
    upstream.configure({ limit: 2, limits: { m: 2 } }, 'change');
    await chat('change', 'b', { stream: true });
    upstream.configure({ limits: { m: 1 } }, 'change');
    expect(await statusOf('change')).toBe(429);
    expect(upstream.stats('change')).toMatchObject({ admitted: 2, refused: { concurrency: 2 } });
    upstream.resume('change');
  });

  it('see a call end only after the lag', async () => {
    upstream.configure({ limit: 1, accountingLagMs: 1_000 }, 'lag');
    expect(await statusOf('lag')).toBe(200);
    expect(await statusOf('lag')).toBe(429);
    await delay(1_100);
    expect(await statusOf('lag')).toBe(200);
  });
});

describe('failures that a test asks for', () => {
  it('befall the next calls, in order', async () => {
    upstream.configure({ refuseAs: 'anthropic' }, 'next');
    upstream.failNext(2, 'overload', 'next');
    upstream.failNext(1, 'error', 'next');
    const statuses: number[] = [];
    for (let i = 0; i < 4; i += 1) statuses.push(await statusOf('next'));
    expect(statuses).toEqual([529, 529, 500, 200]);
    expect(upstream.stats('next')).toMatchObject({
      refused: { overload: 2 },
      rejected429: 0,
      granted: 2,
    });
  });

  it('wait for a call that no limit of concurrency refuses', async () => {
    upstream.configure({ limit: 0 }, 'wait');
    upstream.failNext(1, 'error', 'wait');
    expect(await statusOf('wait')).toBe(429);
    upstream.configure({ limit: 1 }, 'wait');
    expect([await statusOf('wait'), await statusOf('wait')]).toEqual([500, 200]);
  });

  it('befall one call each time, by its own words', async () => {
    const poison = 'poison [[strict fail=tokens fail-wait-ms=2500]]';
    upstream.configure({ refuseAs: 'openai' }, 'poison');
    for (let tries = 0; tries < 3; tries += 1) {
      const refused = await chat('poison', poison);
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3']);
      expect(await refused.text()).toContain('"type":"tokens"');
      expect(await statusOf('poison')).toBe(200);
    }
    expect(upstream.stats('poison').arrivals[0]?.label).toBe('poison');
  });

  it('reset a connection before the first byte', async () => {
    await expect(chat('reset', '[[strict fail=reset]]')).rejects.toThrow('fetch failed');
    expect(upstream.stats('reset').arrivals[0]?.state).toBe('broken');
  });

  test.each<[string, string, string]>([
    ['/v1/chat/completions', '', 'server_is_overloaded'],
    ['/v1/responses', '', 'server_is_overloaded'],
    ['/v1/messages', '', 'overloaded_error'],
    ['/v1beta/models/m:streamGenerateContent', '?alt=sse', 'UNAVAILABLE'],
    ['/v1beta/models/m:streamGenerateContent', '', 'UNAVAILABLE'],
    ['/api/chat', '', 'an error was encountered'],
  ])('end a stream of %s%s with its error event', async (path, query, said) => {
    const response = await fetch(`${upstream.scopeUrl('event')}${path}${query}`, {
      method: 'POST',
      headers: { 'x-strict-fail': 'error_event' },
      body: '{"model":"m","stream":true,"input":"a","messages":[]}',
    });
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(text).toContain(said);
    expect(text).not.toMatch(/\[DONE\]|response\.completed|message_stop|STOP|"done":true/);
  });

  it('that do not exist are a mistake of the author', async () => {
    const unknown = 'nothing' as StrictFailure;
    expect(() => upstream.failNext(1, unknown)).toThrow('nothing');
    expect(await statusOf('mistake', '[[strict fail=nothing]]')).toBe(500);
  });

  it('can be asked for over HTTP, and a reset forgets them', async () => {
    const control = (verb: string, body = ''): Promise<Response> =>
      fetch(`${upstream.scopeUrl('http')}/__strict/${verb}`, { method: 'POST', body });
    const ask = '{"calls":2,"failure":"quota"}';
    expect((await control('fail-next', ask)).status).toBe(200);
    expect((await control('fail-next', '{"calls":2,"failure":"x"}')).status).toBe(400);
    expect((await control('configure', '{"rates":{"m":{"rmp":1}}}')).status).toBe(400);
    expect(await statusOf('http')).toBe(429);
    await control('reset');
    expect(await statusOf('http')).toBe(200);
  });
});

describe('limit headers', () => {
  const rates = { m: { rpm: 5, tpm: 1_000 } };
  const remaining = async (scope: string): Promise<string | null> => {
    const response = await chat(scope, '[[strict input-tokens=100 output-tokens=1]]');
    await response.arrayBuffer();
    return response.headers.get('x-ratelimit-remaining-tokens');
  };

  it('are sent where a provider is named, with what truly remains', async () => {
    upstream.configure({ rates }, 'headers');
    expect(await remaining('headers')).toBeNull();
    upstream.configure({ refuseAs: 'groq' }, 'headers');
    expect(await remaining('headers')).toBe('799');
    upstream.configure({ sendsLimitHeaders: false }, 'headers');
    expect(await remaining('headers')).toBeNull();
  });

  it('may lie', async () => {
    upstream.configure({ rates, sendsLimitHeaders: true, liesInHeaders: true }, 'lies');
    expect([await remaining('lies'), await remaining('lies')]).toEqual(['0', '0']);
  });
});

it('gives Gemini its errors inside the array where the stream is one', async () => {
  const url = `${upstream.scopeUrl('array')}/v1beta/models/m:streamGenerateContent`;
  const send = async (target: string): Promise<unknown> => {
    const response = await fetch(target, { method: 'POST', body: '{}' });
    return response.json();
  };
  upstream.configure({ fail: 'error_event', chunks: 4 }, 'array');
  expect(await send(url)).toHaveLength(3);
  upstream.configure({ fail: 'requests' }, 'array');
  expect(await send(url)).toMatchObject([{ error: { code: 429 } }]);
  expect(await send(`${url}?alt=sse`)).toMatchObject({ error: { code: 429 } });
});
