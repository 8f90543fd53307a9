// A group that counts neither tokens nor cost pays nothing for it: its bodies and its answers go by unread.
import { afterAll, describe, expect, it } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { call, until, type CallInit } from '../support/worker.ts';
import { CHAT, chatBody, counted, newScene, NOTHING, post, untilCounted } from './scene.ts';

afterAll(nothingLeaks);

const RAW = { encodeResponseBody: 'manual' } as CallInit;
const BODY = chatBody('one two three', { stream: true });

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
    const { readable, writable } = new FixedLengthStream(BODY.length);
    const writer = writable.getWriter();
    const write = (text: string): void => {
      void writer.write(new TextEncoder().encode(text)).catch(() => {});
    };
    write(BODY.slice(0, 20));
    const answer = call(`/up${CHAT}`, { method: 'POST', body: readable });
    const rest = async (): Promise<string> => {
      write(BODY.slice(20));
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
