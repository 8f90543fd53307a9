// What counting does to the bytes of a call: nothing in a group that counts neither tokens nor cost. Where
// an upstream is told so, a stream is asked for its usage on behalf of a caller who sees nothing of that.
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import type { Settings } from '../support/strict.ts';
import { call, until, type CallInit } from '../support/worker.ts';
import {
  CHAT,
  chatBody,
  counted,
  COUNTING,
  newScene,
  NOTHING,
  post,
  untilCounted,
  type Scene,
} from './scene.ts';

afterAll(nothingLeaks);

const RAW = { encodeResponseBody: 'manual' } as CallInit;
const BODY = chatBody('one two three', { stream: true });

/** A body that is too long to read before its call takes a slot. */
const LONG = chatBody('one two three '.repeat(4_000), { stream: true });

/** Requests are counted without a look at them. */
const UNMETERED = { max_concurrency: 8, rpm: 1_000, rpd: 1_000, starts_per_s: 100 };
const METERED = { tpm: 1_000_000 };

it.each([
  ['an unmetered group passes on what the caller accepts', UNMETERED, 'gzip, br'],
  ['a metered one asks for plain bytes, which can be counted', METERED, 'identity'],
])('%s', async (_, limits, expected) => {
  await newScene({ echo: true }, limits);
  const headers = { 'accept-encoding': 'gzip, br' };
  const response = await post(`/up${CHAT}`, BODY, { headers, ...RAW });
  const echo = await response.json<{ headers: Record<string, string>; bodyBytes: number }>();
  expect(echo.headers['accept-encoding']).toBe(expected);
  expect(echo.bodyBytes).toBe(BODY.length);
});

describe('a body that is still being sent', () => {
  /** Sends half of a body of known length, through a group that keeps none for a second try. */
  async function half(limits: Record<string, number>) {
    const scene = await newScene({}, limits, {}, { retries: { max_body_bytes: 0 } });
    const { readable, writable } = new FixedLengthStream(LONG.length);
    const writer = writable.getWriter();
    const write = (text: string): void => {
      void writer.write(new TextEncoder().encode(text)).catch(() => {});
    };
    write(LONG.slice(0, 20));
    const answer = call(`/up${CHAT}`, { method: 'POST', body: readable });
    const rest = async (): Promise<string> => {
      write(LONG.slice(20));
      await writer.close();
      return (await answer).text();
    };
    return { ...scene, rest };
  }

  it('is on its way to the upstream in an unmetered group', async () => {
    const { strict, rest } = await half(UNMETERED);
    await until(async () => expect((await strict.stats()).inFlight).toBe(1));
    expect(await rest()).toContain('[DONE]');
  });

  it('is read to its end in a metered one', async () => {
    const { strict, group, rest } = await half(METERED);
    // A whole call goes by meanwhile, so it was not only slow.
    await (await post(`/up${CHAT}`, BODY)).text();
    expect((await strict.stats()).total).toBe(1);
    expect(await rest()).toContain('[DONE]');
    expect((await strict.stats()).total).toBe(2);
    await untilCounted(group, { reservedUsd: 0 });
  });
});

it('an unmetered group keeps no account of tokens and cost', async () => {
  const { group } = await newScene({ inputTokens: 70, outputTokens: 11 }, UNMETERED);
  await (await post(`/up${CHAT}`, BODY)).text();
  await untilCounted(group, { requests: 1 });
  expect(await counted(group)).toEqual({ ...NOTHING, requests: 1 });
});

describe('usage that is asked for:', () => {
  const USAGE: Settings = { chunks: 6, inputTokens: 70, cachedTokens: 20, outputTokens: 44 };

  const ASKING = chatBody('one two three', {
    stream: true,
    stream_options: { include_usage: true },
  });
  const WHOLE = chatBody('one two three');

  let scene: Scene;

  beforeEach(async () => {
    scene = await newScene(USAGE, COUNTING, { inject_usage: true });
  });

  /** The answer of the upstream that is asked straight. */
  async function straight(body: string): Promise<string> {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(scene.strict.url + CHAT, { method: 'POST', body, headers });
    return response.text();
  }

  async function through(body: string, headers: Record<string, string> = {}): Promise<string> {
    const response = await post(`/up${CHAT}`, body, { headers });
    expect(response.status).toBe(200);
    return response.text();
  }

  /** Usage that a stream ends with if it was asked for. */
  const CHUNK = '"choices":[],"usage":{';

  it('the answer of one who did not ask is the same as without it', async () => {
    const text = await through(BODY);
    expect(await straight(ASKING)).toContain(CHUNK);
    expect(await straight(ASKING)).toContain('"usage":null');
    expect(text).toBe(await straight(BODY));
    expect(text).toContain('data: [DONE]');
    await untilCounted(scene.group, {
      requests: 1,
      inputTokens: 70,
      outputTokens: 44,
      usd: 0.00055,
    });
  });

  it('the body of the call is otherwise the same', async () => {
    const sent = BODY.replace('{', '{"stream_options":{"include_usage":true},');
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(sent));
    const echo = JSON.parse(await through(BODY, { 'x-strict-echo': '1' })) as { sha256: string };
    expect(echo.sha256).toBe(new Uint8Array(digest).toHex());
  });

  it.each([
    ['one who asked keeps it', ASKING],
    ['an answer that is no stream stays as it is', WHOLE],
  ])('%s', async (_, body) => {
    expect(await through(body)).toBe(await straight(body));
  });

  it('a second try lacks it too', async () => {
    const once = await through(BODY);
    await scene.strict.failNext('concurrency', 2);
    const response = await post(`/up${CHAT}`, BODY);
    expect(response.headers.get('headgate-tries')).toBe('3');
    expect(await response.text()).toBe(once);
    expect(once).not.toContain(CHUNK);
  });

  it('an answer that is refused stays as it is', async () => {
    const response = await post(`/up${CHAT}`, BODY, { headers: { 'x-strict-status': '400' } });
    const same = await fetch(scene.strict.url + CHAT, {
      method: 'POST',
      body: BODY,
      headers: { 'x-strict-status': '400' },
    });
    expect(await response.text()).toBe(await same.text());
  });

  it('nobody is asked by default, nor where no group counts', async () => {
    for (const [limits, upstream] of [
      [COUNTING, {}],
      [{ rpm: 100 }, { inject_usage: true }],
    ] as const) {
      scene = await newScene({ ...USAGE, echo: true }, limits, upstream);
      const { bodyBytes } = JSON.parse(await through(BODY)) as { bodyBytes: number };
      expect(bodyBytes).toBe(BODY.length);
      await scene.strict.configure({ echo: false });
      expect(await through(BODY)).toBe(await straight(BODY));
    }
  });
});
