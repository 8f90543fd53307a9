// A refusal holds only the calls that it is about, also in automatic groups: those of a model, a service tier, or a
// caller's own key. All other calls start at once.
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { keyHeader, keyOf } from '../order/scene.ts';
import { del, group, leased, leave, limitTo, patch, post, queued } from '../leases/scene.ts';
import { nothingLeaks, pool } from '../support/pool.ts';
import { inPieces } from '../support/packing.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { stopTime } from '../support/time.ts';
import { call, configure, until } from '../support/worker.ts';

let upstreams = 0;
let strict: Strict;
let upstream = '';
let chat = '';

beforeEach(async () => {
  upstreams += 1;
  strict = await strictScope('scopes');
  upstream = `scopes-${upstreams}`;
  chat = `/${upstream}/v1/chat/completions`;
});

afterAll(nothingLeaks);

/** A call that does not wait; what it asks for may be refused by the upstream. */
interface ScopesSent {
  readonly body?: object;
  readonly key?: string;
  readonly refuseAs?: string;
  readonly headers?: Record<string, string>;
}

async function send({
  body = {},
  key = 'sk-own',
  refuseAs,
  headers = {},
}: ScopesSent): Promise<number> {
  const fails = refuseAs === undefined ? {} : { 'x-strict-fail': refuseAs };
  const answer = await call(chat, {
    json: { model: 'm', messages: [{ role: 'user', content: 'hi' }], ...body },
    headers: { authorization: `Bearer ${key}`, 'headgate-max-wait': '0', ...fails, ...headers },
  });
  await answer.arrayBuffer();
  return answer.status;
}

/** How many calls the upstream got. */
async function arrivals(): Promise<number> {
  return (await strict.stats()).total;
}

const REQUESTS = { refuseAs: 'requests', headers: { 'x-strict-fail-wait-ms': '600000' } };

describe('an automatic group', () => {
  beforeEach(() => configure({ upstreams: [{ id: upstream, base_url: strict.url }], groups: [] }));

  it('starts calls of the other models of a key when one is full', async () => {
    expect(await send({ body: { model: 'flash' } })).toBe(200);
    expect(await send({ body: { model: 'full' }, ...REQUESTS })).toBe(429);
    const before = await arrivals();
    expect(await send({ body: { model: 'full' } })).not.toBe(200);
    expect(await arrivals()).toBe(before);
    expect(await send({ body: { model: 'flash' } })).toBe(200);
    expect(await send({ body: { model: 'another' } })).toBe(200);
  });

  it('starts calls of the standard tier when another tier is full', async () => {
    expect(await send({})).toBe(200);
    for (let index = 0; index < 12; index += 1) {
      const body = { service_tier: 'flex' };
      expect(await send({ body, refuseAs: 'overload' })).not.toBe(200);
    }
    for (let index = 0; index < 8; index += 1) expect(await send({})).toBe(200);
    expect(await send({ body: { service_tier: 'auto' } })).toBe(200);
    // On a busy machine the pause may be over by now. A refusal of the next call begins a longer one.
    await until(async () => {
      const before = await arrivals();
      const flex = await send({ body: { service_tier: 'flex' }, refuseAs: 'overload' });
      expect(flex).not.toBe(200);
      expect(await arrivals()).toBe(before);
    });
  });

  it.each([
    ['of unknown length', 100_000, false],
    ['too large to be kept', 5_000_000, true],
  ])('tells the models of bodies %s', async (_, bytes, isLengthKnown) => {
    const upload = async (model: string, headers: Record<string, string> = {}): Promise<number> => {
      const answer = await call(chat, {
        method: 'POST',
        body: inPieces(`${`{"model":"${model}","messages":[],"x":"`.padEnd(bytes - 2, 'x')}"}`),
        headers: {
          authorization: 'Bearer sk-own',
          'content-type': 'application/json',
          'headgate-max-wait': '0',
          ...(isLengthKnown && { 'content-length': String(bytes) }),
          ...headers,
        },
      });
      await answer.arrayBuffer();
      return answer.status;
    };
    const fails = { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': '600000' };
    // The model of the first one is not known until others read theirs.
    expect(await upload('full', fails)).toBe(429);
    expect(await send({ body: { model: 'flash' } })).toBe(200);
    expect(await upload('full', fails)).toBe(429);
    const before = await arrivals();
    expect(await upload('full')).not.toBe(200);
    expect(await arrivals()).toBe(before);
    // Their tier is not known, so calls of the standard tier are not held.
    expect(await send({ body: { model: 'full' } })).toBe(200);
    expect(await upload('flash')).toBe(200);
    expect(await send({ body: { model: 'flash' } })).toBe(200);
  });

  it('reads the tier of a call whose model is in its path', async () => {
    // The limiter of the tier holds calls back for seconds only.
    stopTime();
    const generate = async (body: object, headers: Record<string, string> = {}) => {
      const answer = await call(`/${upstream}/v1beta/models/m:generateContent`, {
        json: { contents: [{ parts: [{ text: 'hi' }] }], ...body },
        headers: { 'x-goog-api-key': 'own', 'headgate-max-wait': '0', ...headers },
      });
      await answer.arrayBuffer();
      return answer.status;
    };
    const flex = { service_tier: 'flex' };
    const dedicated = { 'x-vertex-ai-llm-request-type': 'dedicated' };
    expect(await generate({})).toBe(200);
    expect(await generate({}, { ...dedicated, 'x-strict-fail': 'requests' })).toBe(429);
    expect(await generate({}, dedicated)).toBe(429);
    for (let index = 0; index < 12; index += 1) {
      expect(await generate(flex, { 'x-strict-fail': 'overload' })).not.toBe(200);
    }
    expect(await generate({})).toBe(200);
    expect(await generate({ serviceTier: 'SERVICE_TIER_STANDARD' })).toBe(200);
    expect(await generate({ serviceTier: 'unspecified' })).toBe(200);
    const before = await arrivals();
    expect(await generate(flex)).not.toBe(200);
    expect(await generate({ serviceTier: 'SERVICE_TIER_FLEX' })).not.toBe(200);
    expect(await arrivals()).toBe(before);
    vi.restoreAllMocks();
  });

  it('finds the model of a call in a form', async () => {
    const form = new FormData();
    form.set('model', 'full');
    form.set('file', new Blob(['x']), 'a.wav');
    const upload = async (headers: Record<string, string> = {}): Promise<number> => {
      const answer = await call(`/${upstream}/v1/audio/transcriptions`, {
        method: 'POST',
        body: form,
        headers: { authorization: 'Bearer sk-own', 'headgate-max-wait': '0', ...headers },
      });
      await answer.arrayBuffer();
      return answer.status;
    };
    const fails = { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': '600000' };
    expect(await send({ body: { model: 'other' } })).toBe(200);
    expect(await upload(fails)).toBe(429);
    const before = await arrivals();
    expect(await upload()).not.toBe(200);
    expect(await arrivals()).toBe(before);
    expect(await send({ body: { model: 'other' } })).toBe(200);
  });
});

describe("Anthropic's fast mode", () => {
  beforeEach(() => configure({ upstreams: [{ id: upstream, base_url: strict.url }], groups: [] }));

  it('has its own refusals', async () => {
    const message = async (body: object, headers: Record<string, string> = {}): Promise<number> => {
      const answer = await call(`/${upstream}/v1/messages`, {
        json: { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }], ...body },
        headers: { 'x-api-key': 'sk-own', 'headgate-max-wait': '0', ...headers },
      });
      await answer.arrayBuffer();
      return answer.status;
    };
    const fails = { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': '600000' };
    expect(await message({})).toBe(200);
    expect(await message({ speed: 'fast' }, fails)).toBe(429);
    const before = await arrivals();
    expect(await message({ speed: 'fast' })).not.toBe(200);
    expect(await arrivals()).toBe(before);
    expect(await message({})).toBe(200);
    expect(await message({ speed: 'standard' })).toBe(200);
  });
});

describe('leases', () => {
  it('of a paused model wait, and leases of other models are granted', async () => {
    await limitTo([group('lent', 3, { match: { upstreams: ['up'] } })]);
    const ask = (model: string | undefined, wait = 0) =>
      post({ upstream: 'up', model, max_wait_ms: wait });
    const first = await leased({ upstream: 'up', model: 'full' });
    await patch(first.lease, {
      status: 429,
      headers: { 'retry-after': '20' },
      error: { error: { message: 'Rate limit reached for full on requests per min (RPM)' } },
    });
    await del(first.lease);
    expect(await ask('full')).toMatchObject({ status: 429, reason: 'upstream_limited' });
    const waiting = await queued({ upstream: 'up', model: 'full', max_wait_ms: 60_000 });
    for (const model of ['flash', undefined]) {
      const { lease } = await leased({ upstream: 'up', model, max_wait_ms: 0 });
      await del(lease);
    }
    await leave(waiting.ticket);
    await pool('lent').relearn();
  });
});

describe.each([
  ['without gateway keys', []],
  ['with gateway keys', ['acme', 'bolt']],
])("a group whose calls come with callers' own keys, %s", (_, ids) => {
  const [a, b] = ids.map(keyHeader);

  beforeEach(async () => {
    await configure({
      upstreams: [{ id: upstream, base_url: strict.url }],
      groups: [
        { name: upstream, match: { upstreams: [upstream] }, limits: { max_concurrency: 5 } },
      ],
      keys: await Promise.all(ids.map((id) => keyOf(id))),
    });
  });

  it.each(['requests', 'long_window', 'ramp', 'overload', 'error', 'reset'])(
    'holds a refusal (%s) against the key that met it',
    async (refuseAs) => {
      expect(await send({ key: 'sk-honest', ...(b && { headers: b }) })).toBe(200);
      const headers = { ...a, 'x-strict-fail-wait-ms': '600000' };
      for (let index = 0; index < 12; index += 1) {
        expect(await send({ key: 'sk-evil', refuseAs, headers })).not.toBe(200);
      }
      const before = await arrivals();
      expect(await send({ key: 'sk-evil', ...(a && { headers: a }) })).not.toBe(200);
      expect(await arrivals()).toBe(before);
      expect(await send({ key: 'sk-honest', ...(b && { headers: b }) })).toBe(200);
      expect(await send({ key: 'sk-later', ...(b && { headers: b }) })).toBe(200);
    },
  );

  it.each([
    [
      'beside others',
      (index: number) => ({ authorization: `Bearer sk-${index}`, 'api-key': 'evil' }),
    ],
    ['with other schemes', (index: number) => ({ authorization: `Token${index} evil` })],
    ['among several values', (index: number) => ({ authorization: `Bearer ${index},evil` })],
  ])('holds a refusal against one key that comes %s', async (__, keys) => {
    expect(await send({ key: 'sk-honest', ...(b && { headers: b }) })).toBe(200);
    const fails = { 'x-strict-fail-wait-ms': '600000' };
    expect(await send({ key: 'evil', refuseAs: 'requests', headers: { ...a, ...fails } })).toBe(
      429,
    );
    for (let index = 0; index < 3; index += 1) {
      const headers = { ...a, ...keys(index), ...fails };
      expect(await send({ refuseAs: 'requests', headers })).toBe(429);
    }
    expect(await send({ key: 'sk-honest', ...(b && { headers: b }) })).toBe(200);
  });
});
