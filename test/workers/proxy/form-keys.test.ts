// A gateway key in a field of a form goes to no upstream: the call is refused, or broken off before.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { inPieces } from '../support/packing.ts';
import { admin, call, configure, type CallInit } from '../support/worker.ts';

const GATEWAY_KEY = 'hg_gateway-key-0815';
const MULTIPART = 'multipart/form-data; boundary=B';
const URLENCODED = 'application/x-www-form-urlencoded';

/** Bodies that the upstream got, of each call that reached it, read to their ends. */
let arrivals: Promise<{ readonly text: string; readonly isWhole: boolean }>[] = [];

beforeAll(async () => {
  const { json } = await admin('POST', '/fingerprint', { key: GATEWAY_KEY });
  const base_url = 'https://upstream.test';
  await configure({
    upstreams: [
      { id: 'open', base_url },
      { id: 'ours', base_url, auth: { secret: 'UPSTREAM_TEST_KEY' } },
    ],
    groups: [
      {
        name: 'forms',
        match: { upstreams: ['open', 'ours'] },
        limits: { max_concurrency: 8 },
      },
    ],
    keys: [{ id: 'team-a', hash: json.hash as string, allow: ['files'] }],
  });
});

beforeEach(() => {
  arrivals = [];
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
    const arrival = received(init?.body ?? null);
    arrivals.push(arrival);
    await arrival;
    if (init?.signal?.aborted === true) throw new Error('aborted');
    return Response.json({ text: 'heard' });
  });
});

afterEach(() => vi.restoreAllMocks());
afterAll(nothingLeaks);

async function received(body: BodyInit | null): Promise<{ text: string; isWhole: boolean }> {
  let text = '';
  const { body: stream } = new Response(body);
  const decoder = new TextDecoder('latin1');
  try {
    for await (const chunk of stream ?? []) text += decoder.decode(chunk as Uint8Array);
    return { text, isWhole: true };
  } catch {
    return { text, isWhole: false };
  }
}

const field = (name: string, value: string): string =>
  `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const file = (bytes: number): string =>
  `--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n${'\n-'.repeat(bytes / 2)}\r\n`;
const END = '--B--\r\n';

const PATHS = [
  // Their bodies are read for the model, looked at for keys alone, or take no slot.
  '/ours/v1/audio/transcriptions',
  '/open/v1/audio/transcriptions',
  '/open/v1/files',
  '/ours/v1/files',
];

async function send(path: string, type: string, body: BodyInit, more = {}): Promise<Response> {
  const headers = { 'headgate-key': GATEWAY_KEY, 'content-type': type, ...more };
  const own = path.startsWith('/open') ? { authorization: 'Bearer sk-mine' } : {};
  const init: CallInit = { method: 'POST', body, headers: { ...headers, ...own } };
  return call(path, init);
}

async function expectRefused(response: Response, name: string): Promise<void> {
  const text = await response.text();
  expect([response.status, response.headers.get('headgate-reason')]).toEqual([
    400,
    'body_unreadable',
  ]);
  expect(text).toContain(name);
  expect(text).toContain('headgate-key');
  expect(text).not.toContain(GATEWAY_KEY);
}

describe('a gateway key in a field of a form', () => {
  it.each(PATHS)('is not sent, and the field is named: %s', async (path) => {
    const model = field('model', 'whisper-1');
    for (const name of ['key', 'api_key', 'token']) {
      const form = model + file(1_000) + field(name, ` ${GATEWAY_KEY}`) + END;
      await expectRefused(await send(path, MULTIPART, form), name);
    }
    const another = model + field('key', 'hg_of-somebody-else') + END;
    await expectRefused(await send(path, MULTIPART, another), 'key');
    const packed = new Blob([model + field('key', GATEWAY_KEY) + END])
      .stream()
      .pipeThrough(new CompressionStream('gzip'));
    const bytes = await new Response(packed).bytes();
    const gzip = { 'content-encoding': 'gzip' };
    await expectRefused(await send(path, MULTIPART, bytes, gzip), 'key');
    expect(arrivals).toEqual([]);
  });

  it.each(['/open/v1/files', '/open/v1/whatever', '/open/v1/embeddings'])(
    'is not sent, escaped or not, in a form of one line: %s',
    async (path) => {
      for (const body of [`a=b&token=${GATEWAY_KEY}`, 'token=%68g_%67ateway&a=b']) {
        await expectRefused(await send(path, URLENCODED, body), 'token');
      }
      expect(arrivals).toEqual([]);
    },
  );

  it('is not sent packed in a way that cannot be undone', async () => {
    const packed = { 'content-encoding': 'zstd' };
    const response = await send('/open/v1/files', MULTIPART, 'anything', packed);
    expect(response.headers.get('headgate-reason')).toBe('body_unreadable');
    expect(arrivals).toEqual([]);
  });

  it.each(PATHS)('that comes behind a large file breaks the call off: %s', async (path) => {
    const form = field('model', 'm') + file(600_000) + field('api_key', GATEWAY_KEY) + END;
    for (const body of [form, inPieces(form, 100_000)]) {
      arrivals = [];
      await expectRefused(await send(path, MULTIPART, body), 'api_key');
      for (const arrival of arrivals) {
        const { text, isWhole } = await arrival;
        expect(isWhole).toBe(false);
        expect(text).not.toContain('hg_');
      }
    }
  });
});

describe('an ordinary form', () => {
  it.each(PATHS)('arrives byte for byte: %s', async (path) => {
    const speaks = field('prompt', `keys are written ${GATEWAY_KEY}`);
    for (const bytes of [1_000, 600_000]) {
      const form = field('model', 'whisper-1') + speaks + file(bytes) + field('a', 'b') + END;
      for (const body of [form, inPieces(form, 100_000)]) {
        arrivals = [];
        const response = await send(path, MULTIPART, body);
        expect(await response.json()).toEqual({ text: 'heard' });
        const [arrival] = await Promise.all(arrivals);
        expect(arrival?.isWhole).toBe(true);
        expect(arrival?.text === form).toBe(true);
      }
    }
  });

  it('of one line, and JSON that speaks of keys, likewise', async () => {
    const json = `{"model":"m","messages":[{"role":"user","content":"${GATEWAY_KEY}"}]}`;
    for (const [type, body] of [
      [URLENCODED, `a=b&prompt=my+${GATEWAY_KEY}`],
      ['application/json', json],
    ] as const) {
      arrivals = [];
      expect((await send('/open/v1/files', type, body)).status).toBe(200);
      expect((await Promise.all(arrivals))[0]).toEqual({ text: body, isWhole: true });
    }
  });
});
