// What a call's model counts as, where a key is held to groups, the operator pays, or a group counts: the
// one that the upstream will read, or the call goes nowhere. The upstream is real and counts what reached it.
import { afterAll, beforeAll, beforeEach, describe, expect, it, test, vi } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { NO_COOLDOWN, nothingLeaks, untilStatus } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, change, configure, open, until, type CallInit } from '../support/worker.ts';

const GATEWAY_KEYS = { held: 'hg_held-to-groups', free: 'hg_held-to-none' };
const HELD = { 'headgate-key': GATEWAY_KEYS.held };
const FREE = { 'headgate-key': GATEWAY_KEYS.free };
const CHAT = '/v1/chat/completions';

let strict: Strict;
let keys: NonNullable<ConfigInput['keys']> = [];

beforeAll(async () => {
  strict = await strictScope('true-model');
  const hashOf = async (key: string) =>
    (await admin('POST', '/fingerprint', { key })).json.hash as string;
  keys = [
    { id: 'held', hash: await hashOf(GATEWAY_KEYS.held), groups: ['cheap'] },
    { id: 'free', hash: await hashOf(GATEWAY_KEYS.free) },
  ];
});

afterAll(nothingLeaks);

function upstreams(): NonNullable<ConfigInput['upstreams']> {
  const base_url = strict.url;
  const auth = { secret: 'UPSTREAM_TEST_KEY' };
  return [
    { id: 'own', base_url },
    { id: 'ours', base_url, auth, openai_at: '/v1', aliases: { 'cheap-7': 'cheap' } },
    { id: 'ours-gemini', base_url, auth, dialect: 'gemini' },
    { id: 'ours-opaque', base_url, auth, dialect: 'opaque' },
    { id: 'bare', base_url, auth },
  ];
}

const ofCheap = (limits: object = { max_concurrency: 8 }) => ({
  name: 'cheap',
  match: { models: ['cheap'], upstreams: ['own', 'ours', 'ours-*'] },
  limits,
  holds: NO_COOLDOWN,
});

interface TrueModelSeen {
  readonly status: number;
  readonly reason: string | null;
  readonly groups: string | null;
  /** Calls that reached the upstream, and what became of each. */
  readonly arrivals: readonly { readonly model: string | null; readonly state: string }[];
  readonly text: string;
}

/** Sends a body as it stands. */
async function send(
  path: string,
  body: BodyInit,
  headers: Record<string, string>,
): Promise<TrueModelSeen> {
  const before = (await strict.stats()).arrivals.length;
  const init: CallInit = {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
  };
  const response = await call(path, init);
  const text = await response.text();
  await until(async () => expect((await strict.stats()).inFlight).toBe(0));
  return {
    status: response.status,
    reason: response.headers.get('headgate-reason'),
    groups: response.headers.get('headgate-groups'),
    arrivals: (await strict.stats()).arrivals.slice(before).map(({ model, state }) => ({
      model,
      state,
    })),
    text,
  };
}

const refused = (status: number, reason: string) => ({ status, reason, arrivals: [] });
const UNREADABLE = refused(400, 'body_unreadable');
const DISAGREES = refused(400, 'header_invalid');
const served = (model: string | null) => ({ status: 200, arrivals: [{ model, state: 'done' }] });

const MESSAGES = '"messages":[{"role":"user","content":"x"}]';
const naming = (model: string) => `{"model":"${model}",${MESSAGES}}`;
const SAYS_CHEAP = { 'headgate-model': 'cheap' };

function utf16(text: string, isLittle: boolean): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(2 * text.length));
  for (let at = 0; at < text.length; at += 1) {
    bytes.setUint16(2 * at, text.charCodeAt(at), isLittle);
  }
  return new Uint8Array(bytes.buffer);
}

async function packed(text: string, format: 'gzip' | 'deflate'): Promise<Uint8Array> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream(format));
  return new Response(stream).bytes();
}

const form = (...models: string[]) =>
  [
    ...models.map((model) => `--B\r\nContent-Disposition: form-data; name="model"\r\n\r\n${model}`),
    '--B--\r\n',
  ].join('\r\n');
const FORM_TYPE = { 'content-type': 'multipart/form-data; boundary=B' };

describe('a key that is held to groups', () => {
  beforeEach(() => configure({ upstreams: upstreams(), groups: [ofCheap()], keys }));

  it('calls what it may, by whatever name', async () => {
    expect(await send(`/ours${CHAT}`, naming('cheap'), HELD)).toMatchObject(served('cheap'));
    const agreeing = { ...HELD, 'headgate-model': 'ours/Cheap' };
    expect(await send(`/ours${CHAT}`, naming('cheap'), agreeing)).toMatchObject(served('cheap'));
    expect(await send(`/ours${CHAT}`, naming('cheap-7'), agreeing)).toMatchObject({
      ...served('cheap-7'),
      groups: 'cheap',
    });
    expect(await send(`/ours${CHAT}`, naming('dear'), HELD)).toMatchObject(
      refused(403, 'key_forbidden'),
    );
  });

  it('says in the header what the body does not show', async () => {
    const headers = { ...HELD, ...SAYS_CHEAP };
    expect(await send(`/ours${CHAT}`, `{${MESSAGES}}`, headers)).toMatchObject(served(null));
    expect(await send(`/ours${CHAT}`, `{"model":null,${MESSAGES}}`, headers)).toMatchObject(
      served(null),
    );
    expect(await send(`/ours${CHAT}`, `{${MESSAGES}}`, HELD)).toMatchObject({ status: 403 });
  });

  test.each(['/ours', '/own', '/ours-opaque'])(
    'says nothing else in the header: %s',
    async (at) => {
      const headers = { ...HELD, ...SAYS_CHEAP, authorization: 'Bearer sk-mine' };
      expect(await send(at + CHAT, naming('dear'), headers)).toMatchObject(DISAGREES);
      const path = '/ours-gemini/v1beta/models/dear:generateContent';
      expect(await send(path, '{}', headers)).toMatchObject(DISAGREES);
    },
  );

  test.each([
    ['twice', `{"model":"cheap",${MESSAGES},"model":"dear"}`],
    ['with an escape', `{"model":"cheap",${MESSAGES},"mod\\u0065l":"dear"}`],
    ['first no text', `{"model":1,${MESSAGES},"model":"dear"}`],
    ['then no text', `{"model":"cheap",${MESSAGES},"model":["dear"]}`],
    ['in two cases', `{"model":"cheap",${MESSAGES},"MODEL":"dear"}`],
    ['in another case', `{"MODEL":"dear",${MESSAGES}}`],
    ['and others to fall back to', `{"model":"cheap","models":["dear"],${MESSAGES}}`],
    ['behind the body', `${naming('cheap')}${naming('dear')}`],
    ['behind a comment', `{"a":[/*"*/],"model":"dear","b":[/*"*/]}`],
    ['in UTF-16 with a mark', utf16(`\ufeff${naming('dear')}`, true)],
    ['in UTF-16 the other way round', utf16(`\ufeff${naming('dear')}`, false)],
    ['in UTF-16 without a mark', utf16(naming('dear'), true)],
    ['in a list', `[${naming('dear')}]`],
  ])('does not hide another model: %s', async (_, body) => {
    for (const headers of [HELD, { ...HELD, ...SAYS_CHEAP }]) {
      const seen = await send(`/ours${CHAT}`, body, headers);
      expect(seen).toMatchObject(UNREADABLE);
      expect(seen.text).not.toContain('Name it in the `headgate-model` header');
    }
  });

  test.each<[string, string, Record<string, string>]>([
    ['a form with two', form('cheap', 'dear'), FORM_TYPE],
    ['a form said to be JSON', form('dear'), {}],
    ['JSON said to be a form', naming('dear'), FORM_TYPE],
    [
      'a query said to be one',
      'model=dear',
      { 'content-type': 'application/x-www-form-urlencoded' },
    ],
    ['a type that nobody knows', naming('cheap'), { 'content-type': 'application/x-made-up' }],
    ['a charset', naming('cheap'), { 'content-type': 'application/json; charset=utf-7' }],
    [
      'two types',
      naming('cheap'),
      { 'content-type': `application/json, ${FORM_TYPE['content-type']}` },
    ],
    ['a packing that cannot be undone', naming('cheap'), { 'content-encoding': 'zstd' }],
    ['two packings', naming('cheap'), { 'content-encoding': 'gzip, gzip' }],
    ['no packing where one is said', naming('cheap'), { 'content-encoding': 'gzip' }],
  ])('does not hide a model behind headers: %s', async (_, body, headers) => {
    const path = `/ours/v1/audio/transcriptions`;
    for (const more of [{}, SAYS_CHEAP]) {
      expect(await send(path, body, { ...HELD, ...headers, ...more })).toMatchObject(UNREADABLE);
    }
  });

  test.each([
    'model=dear',
    'Model=dear',
    'a=1;model=dear',
    'deployment=dear',
    'model=cheap&model=dear',
  ])('does not hide another model in the query: %s', async (query) => {
    const ambiguous = refused(400, 'model_ambiguous');
    for (const body of [naming('cheap'), `{${MESSAGES}}`]) {
      const headers = { ...HELD, ...SAYS_CHEAP };
      expect(await send(`/ours${CHAT}?${query}`, body, headers)).toMatchObject(ambiguous);
    }
    const inPath = `/ours-gemini/v1beta/models/cheap:generateContent?${query}`;
    expect(await send(inPath, '{}', HELD)).toMatchObject(ambiguous);
    const unified = await send(`${CHAT}?${query}`, naming('ours/cheap'), HELD);
    expect(unified).toMatchObject(ambiguous);
  });

  it('may repeat its model in the query, but not refer to one', async () => {
    const again = `/ours${CHAT}?model=cheap-7&api-version=1`;
    expect(await send(again, naming('cheap'), HELD)).toMatchObject(served('cheap'));
    const inHeader = await send(again, `{${MESSAGES}}`, { ...HELD, ...SAYS_CHEAP });
    expect(inHeader).toMatchObject(served(null));
    expect(await send(`/ours${CHAT}?agent_id=a`, naming('cheap'), HELD)).toMatchObject(UNREADABLE);
  });

  test.each(['gzip', 'deflate'] as const)('does not hide a model in %s', async (encoding) => {
    const headers = { ...HELD, 'content-encoding': encoding };
    const two = await packed(`{"model":"cheap",${MESSAGES},"model":"dear"}`, encoding);
    expect(await send(`/ours${CHAT}`, two, headers)).toMatchObject(UNREADABLE);
    const dear = await packed(naming('dear'), encoding);
    expect(await send(`/ours${CHAT}`, dear, { ...headers, ...SAYS_CHEAP })).toMatchObject(
      DISAGREES,
    );
    const cheap = await packed(naming('cheap'), encoding);
    expect(await send(`/ours${CHAT}`, cheap, headers)).toMatchObject({ status: 200 });
  });

  it('is held to them under /v1 too, with a prefix in the header, the body or both', async () => {
    const under = (body: string, headers: Record<string, string>) =>
      send(CHAT, body, { ...HELD, ...headers });
    expect(await under(naming('ours/cheap'), {})).toMatchObject(served('cheap'));
    for (const said of ['ours/cheap', 'OURS/cheap']) {
      const header = { 'headgate-model': said };
      expect(await under(naming('ours/cheap'), header)).toMatchObject(served('cheap'));
      expect(await under(naming('cheap'), header)).toMatchObject(served('cheap'));
      expect(await under(naming('ours/dear'), header)).toMatchObject(DISAGREES);
      expect(await under(naming('dear'), header)).toMatchObject(DISAGREES);
    }
    const named = { 'headgate-upstream': 'ours', ...SAYS_CHEAP };
    expect(await under(naming('dear'), named)).toMatchObject(DISAGREES);
    const two = '{"model":"ours/cheap","model":"ours/dear"}';
    for (const headers of [{}, named, { 'headgate-model': 'ours/cheap' }]) {
      expect(await under(two, headers)).toMatchObject(UNREADABLE);
    }
  });
});

describe('a key that is held to none, on the key of the operator', () => {
  beforeEach(() => configure({ upstreams: upstreams(), groups: [ofCheap()], keys }));

  it('is counted by what the upstream reads', async () => {
    const lies = { ...FREE, 'headgate-model': 'dear' };
    expect(await send(`/ours${CHAT}`, naming('cheap'), lies)).toMatchObject(DISAGREES);
    expect(await send(`/ours${CHAT}`, utf16(naming('cheap'), true), lies)).toMatchObject(
      UNREADABLE,
    );
  });

  it('sends what cannot be read where no group goes by the model, and never two', async () => {
    const odd = { ...FREE, 'content-type': 'application/x-made-up' };
    expect(await send(`/bare${CHAT}`, 'anything', odd)).toMatchObject({ status: 200 });
    const packing = { ...FREE, 'content-encoding': 'zstd', 'x-strict-bytes': '1' };
    expect(await send(`/bare${CHAT}`, 'anything', packing)).toMatchObject({ reason: null });
    expect(await send(`/bare${CHAT}`, 'anything', FREE)).toMatchObject({ status: 200 });
    expect(await send(`/bare${CHAT}`, '{"model":"a","model":"b"}', FREE)).toMatchObject(UNREADABLE);
    const lies = { ...FREE, ...SAYS_CHEAP };
    expect(await send(`/bare${CHAT}`, naming('dear'), lies)).toMatchObject(DISAGREES);
  });
});

describe('a group that counts', () => {
  test.each<[string, object]>([
    ['tokens', { tpm: 1_000_000 }],
    ['output', { otpm: 1_000_000 }],
    ['tokens of a day', { tpd: 1_000_000 }],
    ['cost', { budget_usd: { per_day: 5, fallback_price: { input: 1, output: 1 } } }],
  ])('%s: a caller with a key of its own is believed no more', async (_, limits) => {
    await configure({ upstreams: upstreams(), groups: [ofCheap(limits)] });
    const headers = { authorization: 'Bearer sk-mine' };
    const lies = { ...headers, 'headgate-model': 'dear' };
    expect(await send(`/own${CHAT}`, naming('cheap'), lies)).toMatchObject(DISAGREES);
    expect(await send(`/own${CHAT}`, utf16(naming('cheap'), true), lies)).toMatchObject(UNREADABLE);
    expect(await send(`/own${CHAT}`, '{"model":"dear","model":"cheap"}', headers)).toMatchObject(
      UNREADABLE,
    );
    expect(await send(`/own${CHAT}`, naming('cheap'), headers)).toMatchObject({
      ...served('cheap'),
      groups: 'cheap',
    });
  });

  it('in a key of its own: likewise', async () => {
    const counting = keys.map((key) => ({ ...key, groups: [], limits: { tpm: 1_000_000 } }));
    await configure({ upstreams: upstreams(), groups: [ofCheap()], keys: counting });
    const headers = { ...FREE, authorization: 'Bearer sk-mine', 'headgate-model': 'dear' };
    expect(await send(`/own${CHAT}`, naming('cheap'), headers)).toMatchObject(DISAGREES);
  });
});

describe('a caller that pays for itself, where no group counts', () => {
  beforeEach(() => configure({ upstreams: upstreams(), groups: [ofCheap()] }));

  it('is believed, and its body is not read', async () => {
    const headers = { authorization: 'Bearer sk-mine', ...SAYS_CHEAP };
    // The last is one that no reading gets through.
    for (const body of [naming('dear'), '{"model":"dear","model":"x"}', '{"messages" []}']) {
      expect(await send(`/own${CHAT}`, body, headers)).toMatchObject({
        status: 200,
        groups: 'cheap',
      });
    }
  });
});

/** A body of so many bytes that comes in pieces, with something at its end. */
function large(bytes: number, end: string): ReadableStream<Uint8Array> {
  const text = new TextEncoder();
  const piece = text.encode('x'.repeat(100_000));
  let left = bytes;
  const start = text.encode('{"model":"cheap","messages":[{"role":"user","content":"');
  let isFirst = true;
  return new ReadableStream({
    type: 'bytes',
    pull(controller) {
      if (isFirst) controller.enqueue(start.slice());
      else if (left > 0) controller.enqueue(piece.slice());
      else {
        controller.enqueue(text.encode(`"}]${end}`));
        controller.close();
      }
      if (!isFirst) left -= piece.length;
      isFirst = false;
    },
  });
}

describe('a large body', () => {
  beforeEach(() => configure({ upstreams: upstreams(), groups: [ofCheap()], keys }));

  it('arrives whole, though it is looked at on its way out', async () => {
    expect(await send(`/ours${CHAT}`, large(9_000_000, '}'), HELD)).toMatchObject({
      ...served('cheap'),
      groups: 'cheap',
    });
  });

  test.each([
    ['of unknown length', 9_000_000, ',"model":"dear"}'],
    ['with an escape', 9_000_000, ',"mod\\u0065l":"dear"}'],
    ['with more behind it', 9_000_000, '}{"model":"dear"}'],
    ['that the header agrees with', 9_000_000, ',"MODEL":"dear"}'],
  ])('is broken off at its second model: %s', async (_, bytes, end) => {
    const seen = await send(`/ours${CHAT}`, large(bytes, end), { ...HELD, ...SAYS_CHEAP });
    expect(seen).toMatchObject({ status: 400, reason: 'body_unreadable' });
    expect(seen.arrivals).toEqual([{ model: null, state: 'aborted' }]);
    await untilStatus('cheap', { in_use: 0, queued: 0 });
  });

  it('that is kept to be sent again goes nowhere with two models', async () => {
    const text = `{"model":"cheap","x":"${'x'.repeat(2_000_000)}","model":"dear"}`;
    const headers = { ...HELD, 'content-length': String(text.length) };
    expect(await send(`/ours${CHAT}`, text, headers)).toMatchObject(UNREADABLE);
    await untilStatus('cheap', { in_use: 0, queued: 0 });
  });

  it('that is packed is broken off too', async () => {
    const noise = crypto.getRandomValues(new Uint8Array(60_000)).toHex().repeat(60);
    const random = Array.from({ length: 8 }, () =>
      crypto.getRandomValues(new Uint8Array(60_000)).toHex(),
    );
    const text = `{"model":"cheap","x":"${noise}${random.join('')}","model":"dear"}`;
    const headers = { ...HELD, 'content-encoding': 'gzip' };
    const bytes = await packed(text, 'gzip');
    const stream = new Blob([bytes]).stream();
    const seen = await send(`/ours${CHAT}`, stream, headers);
    expect(seen).toMatchObject({ status: 400, reason: 'body_unreadable' });
    expect(seen.arrivals).toEqual([{ model: null, state: 'aborted' }]);
  });

  it('ends the answer, where that has begun by then', async () => {
    const upstreamSaw = Promise.withResolvers<string>();
    vi.spyOn(globalThis, 'fetch').mockImplementation((_, init) => {
      const body = init?.body as ReadableStream;
      new Response(body).text().then(
        () => upstreamSaw.resolve('all'),
        () => upstreamSaw.resolve('broken off'),
      );
      const { readable, writable } = new IdentityTransformStream();
      const writer = writable.getWriter();
      init?.signal?.addEventListener('abort', () => void writer.abort().catch(() => {}));
      writer.write(new TextEncoder().encode('begun')).catch(() => {});
      return Promise.resolve(new Response(readable));
    });
    try {
      const response = await call(`/ours${CHAT}`, {
        method: 'POST',
        body: large(9_000_000, ',"model":"dear"}'),
        headers: { ...HELD, 'content-type': 'application/json' },
      });
      const end = await response.text().then(
        () => (response.status === 200 ? 'served' : 'refused'),
        () => 'cut',
      );
      expect(end).not.toBe('served');
      expect(await upstreamSaw.promise).toBe('broken off');
    } finally {
      vi.restoreAllMocks();
    }
    await untilStatus('cheap', { in_use: 0, queued: 0 });
  });
});

describe('a group that begins to count while calls wait', () => {
  it('takes those that told the truth and refuses those that did not', async () => {
    await strict.configure({ silentAfterChunks: 1 });
    const match = { upstreams: ['own'] };
    const waits = { name: 'waits', match, limits: { max_concurrency: 1 }, holds: NO_COOLDOWN };
    await configure({ upstreams: upstreams(), groups: [waits] });
    const first = open(`/own${CHAT}`, 'first');
    await untilStatus('waits', { in_use: 1, queued: 0 });
    const start = (model: string) => {
      const body = JSON.stringify({ model, messages: [{ role: 'user', content: model }] });
      const headers = { ...SAYS_CHEAP, 'content-type': 'application/json' };
      return open(`/own${CHAT}`, model, { method: 'POST', body, headers, json: undefined });
    };
    const truth = start('cheap');
    const lie = start('dear');
    await untilStatus('waits', { in_use: 1, queued: 2 });
    await change('PUT', '/groups/waits', {
      ...waits,
      limits: { max_concurrency: 1, tpm: 1_000_000 },
      match: { upstreams: ['own'], operations: ['chat'] },
    });
    const answer = await lie.response;
    expect(answer.headers.get('headgate-reason')).toBe('header_invalid');
    await untilStatus('waits', { in_use: 1, queued: 1 });
    await strict.configure({ silentAfterChunks: null });
    await strict.resume();
    expect(await first.end).toBe('done');
    expect(await truth.end).toBe('done');
    expect((await strict.stats()).arrivals.at(-1)).toMatchObject({ model: 'cheap' });
  });
});
