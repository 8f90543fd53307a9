// A refusal of a call without a model, with an unknown tier, or with a key in an unknown place stops no other calls.
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { keyHeader, keyOf } from '../order/scene.ts';
import { nothingLeaks, untilStatus } from '../support/pool.ts';
import { inPieces } from '../support/packing.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { call, configure, until } from '../support/worker.ts';

let upstreams = 0;
let strict: Strict;
let upstream = '';

beforeEach(async () => {
  upstreams += 1;
  strict = await strictScope('unnamed');
  upstream = `unnamed-${upstreams}`;
});

afterAll(nothingLeaks);

/** Sends a call that does not wait. */
async function send(
  path: string,
  body: BodyInit,
  headers: Record<string, string> = {},
): Promise<number> {
  const answer = await call(`/${upstream}${path}`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', 'headgate-max-wait': '0', ...headers },
  });
  await answer.arrayBuffer();
  return answer.status;
}

const OWN = { authorization: 'Bearer sk-own' };
const FULL = { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': '600000' };

function chat(model: string, headers: Record<string, string> = {}, more = {}): Promise<number> {
  const body = { model, messages: [{ role: 'user', content: 'hi' }], ...more };
  return send('/v1/chat/completions', JSON.stringify(body), { ...OWN, ...headers });
}

async function arrivals(): Promise<number> {
  return (await strict.stats()).total;
}

describe('a call that names no model', () => {
  beforeEach(() => configure({ upstreams: [{ id: upstream, base_url: strict.url }], groups: [] }));

  const moderate = (headers: Record<string, string> = {}): Promise<number> =>
    send('/v1/moderations', JSON.stringify({ input: 'hi' }), { ...OWN, ...headers });

  it.each([true, false])(
    'holds only calls without a model (after another model: %s)',
    async (isAfter) => {
      if (isAfter) await chat('flash');
      expect(await moderate(FULL)).toBe(429);
      const before = await arrivals();
      expect(await moderate()).not.toBe(200);
      expect(await arrivals()).toBe(before);
      expect(await chat('flash')).toBe(200);
      expect(await chat('another')).toBe(200);
    },
  );

  it('is not held by a model that is full', async () => {
    expect(await moderate()).toBe(200);
    expect(await chat('full', FULL)).toBe(429);
    expect(await chat('full')).not.toBe(200);
    expect(await moderate()).toBe(200);
  });

  it.each([
    ['in a form', '/v1/chat/completions', 'messages=hi&model='],
    ['in the query', '/v1/audio/transcriptions', null],
  ])('is none if its model stands %s', async (_, path, form) => {
    const type = form === null ? 'audio/wav' : 'application/x-www-form-urlencoded';
    const ask = (model: string, headers: Record<string, string> = {}): Promise<number> =>
      send(
        `${path}${form === null ? `?model=${model}` : ''}`,
        form === null ? 'RIFF' : `${form}${model}`,
        {
          ...OWN,
          'content-type': type,
          ...headers,
        },
      );
    const isServed = async (model: string): Promise<boolean> => {
      const before = await arrivals();
      await ask(model);
      return (await arrivals()) > before;
    };
    expect(await isServed('flash')).toBe(true);
    expect(await ask('full', FULL)).toBe(429);
    expect(await isServed('full')).toBe(false);
    expect(await isServed('flash')).toBe(true);
    expect(await chat('flash')).toBe(200);
    expect(await chat('full')).not.toBe(200);
  });
});

describe('a queue with calls of several models', () => {
  const WAIT = { 'headgate-max-wait': '60000' };
  /** Refused a moment after it arrived. */
  const LATE = { ...FULL, ...WAIT, 'x-strict-first-byte-delay-ms': '1500' };

  const ofLimit = (limit: number, maxLength: number) =>
    configure({
      upstreams: [{ id: upstream, base_url: strict.url }],
      groups: [
        {
          name: upstream,
          match: { upstreams: [upstream] },
          limits: { max_concurrency: limit },
          queue: { max_length: maxLength },
        },
      ],
    });

  it('starts calls of the other models when the first one is refused', async () => {
    await ofLimit(1, 100);
    const first = chat('full', LATE);
    await until(async () => expect(await arrivals()).toBe(1));
    const others = ['flash', 'mini', 'flash'].map((model) => chat(model, WAIT));
    expect(await first).toBe(429);
    expect(await Promise.all(others)).toEqual([200, 200, 200]);
  });

  it('is not full for a call that can start', async () => {
    await ofLimit(1, 3);
    const pause = { ...FULL, 'x-strict-fail-wait-ms': '30000' };
    expect(await chat('flash')).toBe(200);
    expect(await chat('full', pause)).toBe(429);
    await untilStatus(upstream, { in_use: 0, cooling: 0 });
    const leaving = new AbortController();
    const stopped = [1, 2, 3].map(() =>
      call(`/${upstream}/v1/chat/completions`, {
        json: { model: 'full', messages: [] },
        headers: { ...OWN, ...WAIT },
        signal: leaving.signal,
      }).then(
        ({ status }) => status,
        () => null,
      ),
    );
    await untilStatus(upstream, { queued: 3 });
    const long = chat('flash', { 'x-strict-first-byte-delay-ms': '1500' });
    await until(async () => expect(await arrivals()).toBe(3));
    expect(await chat('flash', WAIT)).toBe(200);
    expect(await long).toBe(200);
    leaving.abort();
    expect((await Promise.all(stopped)).filter((status) => status === 429)).toHaveLength(1);
  });
});

describe('a body that is not kept', () => {
  beforeEach(() => configure({ upstreams: [{ id: upstream, base_url: strict.url }], groups: [] }));

  const fails = (kind: string) => ({ 'x-strict-fail': kind, 'x-strict-fail-wait-ms': '600000' });

  it.each([
    ['requests', 100_000],
    ['overload', 100_000],
    ['concurrency', 100_000],
    ['ramp', 100_000],
    ['long_window', 100_000],
    ['requests', 5_000_000],
  ])('of an unknown tier never stops another tier (%s, %i bytes)', async (kind, bytes) => {
    const upload = (headers: Record<string, string>): Promise<number> =>
      send(
        '/v1/chat/completions',
        inPieces(
          `${'{"model":"m","messages":[],"service_tier":"flex","x":"'.padEnd(bytes - 2, 'x')}"}`,
        ),
        { ...OWN, ...headers },
      );
    expect(await chat('m')).toBe(200);
    for (let index = 0; index < 4; index += 1) {
      expect(await upload(fails(kind))).not.toBe(200);
      expect(await chat('m')).toBe(200);
    }
    expect(await chat('m', {}, { service_tier: 'priority' })).toBe(200);
  });
});

describe.each([
  ['without gateway keys', []],
  ['with gateway keys', ['acme', 'bolt']],
])('a provider key in no known place, %s', (_, ids) => {
  const [a = {}, b = {}] = ids.map(keyHeader);

  beforeEach(async () => {
    await configure({
      upstreams: [{ id: upstream, base_url: strict.url }],
      groups: [
        { name: upstream, match: { upstreams: [upstream] }, limits: { max_concurrency: 5 } },
      ],
      keys: await Promise.all(ids.map((id) => keyOf(id))),
    });
  });

  const ask = (headers: Record<string, string>, query = ''): Promise<number> =>
    send(
      `/v1/chat/completions${query}`,
      JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
      headers,
    );

  it.each([
    ['x-auth-token', 'evil'],
    ['cookie', 'session=evil'],
    ['ocp-apim-subscription-key', 'evil'],
    ['cf-aig-authorization', 'Bearer evil'],
    ['x-acme', 'a1b2c3d4e5f6a7b8c9d0'],
  ])('in %s holds its refusals against itself', async (name, value) => {
    const evil = { ...a, [name]: value };
    const honest = { ...b, [name]: value.replace('evil', 'honest').replace('a1', 'z1') };
    expect(await ask(honest)).toBe(200);
    for (const kind of ['requests', 'error', 'overload']) {
      for (let index = 0; index < 12; index += 1) {
        const headers = { 'x-strict-fail': kind, 'x-strict-fail-wait-ms': '600000' };
        expect(await ask({ ...evil, ...headers })).not.toBe(200);
      }
    }
    const before = await arrivals();
    expect(await ask(evil)).not.toBe(200);
    expect(await arrivals()).toBe(before);
    expect(await ask(honest)).toBe(200);
    expect(await ask({ ...b, authorization: 'Bearer sk-later' })).toBe(200);
    expect(await ask(b)).toBe(200);
  });

  it('in the query is held by its own refusals', async () => {
    expect(await ask(b)).toBe(200);
    const fails = { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': '600000' };
    expect(await ask({ ...a, ...fails }, '?access_token=evil')).toBe(429);
    expect(await ask(a, '?access_token=evil')).not.toBe(200);
    expect(await ask(b, '?access_token=honest')).toBe(200);
    expect(await ask(b)).toBe(200);
  });
});
