// A refusal inside a 200, as JSON or at the beginning of a stream, is handled like the same refusal by status. An error after
// the first content is passed on and counted.
import { afterAll, describe, expect, it } from 'vitest';
import { NO_COOLDOWN, nothingLeaks, pool, untilStatus } from '../support/pool.ts';
import { strictScope, type Settings, type Strict } from '../support/strict.ts';
import { call, configure, until } from '../support/worker.ts';
import type { ConfigInput } from '../../../src/contract/config/config.ts';

afterAll(nothingLeaks);

type RefusedInsideGroup = NonNullable<ConfigInput['groups']>[number];
type RefusedInsideDialect = NonNullable<NonNullable<ConfigInput['upstreams']>[number]['dialect']>;

interface RefusedInsideScene {
  readonly strict: Strict;
  readonly group: string;
}

let scenes = 0;

async function newScene(
  settings: Settings,
  group: Partial<RefusedInsideGroup> = {},
  dialect: RefusedInsideDialect = 'openai',
): Promise<RefusedInsideScene> {
  scenes += 1;
  const name = `inside-${scenes}`;
  const strict = await strictScope(name, settings);
  await configure({
    upstreams: [{ id: name, base_url: strict.url, dialect }],
    groups: [
      {
        name,
        match: { upstreams: [name] },
        limits: { max_concurrency: 3 },
        holds: NO_COOLDOWN,
        ...group,
      },
    ],
  });
  return { strict, group: name };
}

const MESSAGES = [{ role: 'user', content: 'hello' }];
const CONTENTS = [{ role: 'user', parts: [{ text: 'hello' }] }];
const CHAT = '/v1/chat/completions';
const RESPONSES = '/v1/responses';

function ask({ group }: RefusedInsideScene, path = CHAT, json: object = {}, signal?: AbortSignal) {
  const body = { model: 'm', stream: true, messages: MESSAGES, input: 'hello', ...json };
  return call(`/${group}${path}`, { json: body, ...(signal !== undefined && { signal }) });
}

/** An answer that is no stream, or one in the form of its dialect. */
const FORMS: readonly (readonly [string, RefusedInsideDialect, string, object])[] = [
  ['a chat', 'openai', CHAT, { stream: false }],
  ['the stream of a chat', 'openai', CHAT, {}],
  ['a response', 'openai', RESPONSES, { stream: false }],
  ['the stream of a response', 'openai', RESPONSES, {}],
  ['a message', 'anthropic', '/v1/messages', { stream: false, max_tokens: 5 }],
  ['the stream of a message', 'anthropic', '/v1/messages', { max_tokens: 5 }],
  ['Gemini’s answer', 'gemini', '/v1beta/models/m:generateContent', { contents: CONTENTS }],
  [
    'Gemini’s events',
    'gemini',
    '/v1beta/models/m:streamGenerateContent?alt=sse',
    { contents: CONTENTS },
  ],
  ['Gemini’s array', 'gemini', '/v1beta/models/m:streamGenerateContent', { contents: CONTENTS }],
  ['Ollama’s answer', 'ollama', '/api/chat', { stream: false }],
  ['Ollama’s lines', 'ollama', '/api/chat', {}],
];

describe.each(FORMS)('%s', (_, dialect, path, json) => {
  it('that is refused inside a 200 returns to the queue, and is counted', async () => {
    const at = await newScene({ refusesInside: true }, { retries: { max: 2, budget: 1 } }, dialect);
    await at.strict.failNext('overload');
    const response = await ask(at, path, json);
    expect([response.status, response.headers.get('headgate-tries')]).toEqual([200, '2']);
    expect(await response.text()).not.toContain('"error":{');
    await untilStatus(at.group, { in_use: 0, refusals_total: { overload: 1 } });
  });

  it('is passed on byte for byte if the call may not wait', async () => {
    const at = await newScene({ refusesInside: true }, { on_saturated: 'reject' }, dialect);
    const body = { model: 'm', stream: true, messages: MESSAGES, input: 'hello', ...json };
    const headers = { 'content-type': 'application/json', 'x-strict-fail': 'concurrency' };
    const direct = await fetch(`${at.strict.url}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    const passed = await call(`/${at.group}${path}`, { json: body, headers });
    expect([passed.status, passed.headers.get('content-type')]).toEqual([
      200,
      direct.headers.get('content-type'),
    ]);
    expect(await passed.text()).toBe(await direct.text());
    await untilStatus(at.group, { in_use: 0, refusals_total: { concurrency: 1 } });
  });
});

it('a compressed refusal inside a 200 is read', async () => {
  const at = await newScene({ gzip: true, errorAfterChunks: 0 }, { on_saturated: 'reject' });
  const response = await ask(at);
  expect(response.status).toBe(200);
  await response.arrayBuffer();
  await untilStatus(at.group, { in_use: 0, refusals_total: { overload: 1 } });
});

const CONVERSE = '/bedrock/model/m/converse-stream';

it.each<[string, RefusedInsideDialect, string, object, RegExp]>([
  ['a response', 'openai', RESPONSES, {}, /response\.failed/],
  ['a chat', 'openai', CHAT, {}, /"error":/],
  ['a message', 'anthropic', '/v1/messages', { max_tokens: 5 }, /event: error/],
  [
    'Gemini’s events',
    'gemini',
    '/v1beta/models/m:streamGenerateContent?alt=sse',
    { contents: CONTENTS },
    /"error":/,
  ],
  ['Bedrock’s messages', 'bedrock', CONVERSE, {}, /Exception/],
])(
  'twelve callers at a limit of 2 that is told inside a 200 see no error once it is learned: %s',
  async (_, dialect, path, json, error) => {
    const settings = { limit: 2, refusesInside: true, firstByteDelayMs: 20 };
    const at = await newScene(settings, { limits: { max_concurrency: 6 } }, dialect);
    const round = async (): Promise<number> => {
      const texts = await Promise.all(
        Array.from({ length: 12 }, async () => (await ask(at, path, json)).text()),
      );
      return texts.filter((text) => error.test(text)).length;
    };
    await round();
    const failed = [await round(), await round(), await round()];
    expect(failed).toEqual([0, 0, 0]);
    const { refusals_total: refusals } = await pool(at.group).status();
    expect(refusals).toMatchObject({ concurrency: expect.any(Number) });
  },
  60_000,
);

it('an exception in Bedrock’s messages is passed on unchanged if no attempt is left', async () => {
  const at = await newScene({ refusesInside: true }, { on_saturated: 'reject' }, 'bedrock');
  await at.strict.failNext('overload');
  const response = await ask(at, CONVERSE);
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'application/vnd.amazon.eventstream',
  ]);
  expect(await response.text()).toContain('serviceUnavailableException');
  await untilStatus(at.group, { in_use: 0, refusals_total: { overload: 1 } });
});

describe('an error after content', () => {
  it('is passed on, and counts as a failure of the upstream', async () => {
    const at = await newScene({ errorAfterChunks: 2 });
    const response = await ask(at);
    expect(await response.text()).toContain('server_is_overloaded');
    expect(response.headers.get('headgate-tries')).toBe('1');
    await untilStatus(at.group, { in_use: 0, refusals_total: { overload: 1 } });
  });

  it('is found at the end of Gemini’s array', async () => {
    const at = await newScene({ errorAfterChunks: 2 }, {}, 'gemini');
    const path = '/v1beta/models/m:streamGenerateContent';
    expect(await (await ask(at, path, { contents: CONTENTS })).text()).toContain('"error"');
    await untilStatus(at.group, { in_use: 0, refusals_total: { overload: 1 } });
  });

  it('releases its slot if the body of its call is not kept', async () => {
    const at = await newScene({ errorAfterChunks: 2 }, { on_saturated: 'reject' });
    const messages = [{ role: 'user', content: 'x'.repeat(400_000) }];
    expect(await (await ask(at, CHAT, { messages })).text()).toContain('server_is_overloaded');
    await untilStatus(at.group, { in_use: 0, refusals_total: { overload: 1 } });
  });

  it('opens the breaker of its model if it repeats', async () => {
    const at = await newScene({ errorAfterChunks: 2 });
    const breaker = async () => (await pool(at.group).status()).scopes?.[0]?.breaker ?? 'closed';
    for (let sent = 1; (await breaker()) === 'closed'; sent += 1) {
      expect(await (await ask(at)).text()).toContain('server_is_overloaded');
      await untilStatus(at.group, { refusals_total: { overload: sent } });
    }
    expect(await breaker()).toBe('open');
    // Calls for another model go on.
    const other = await ask(at, CHAT, { model: 'n' });
    expect(await other.text()).toContain('server_is_overloaded');
    await untilStatus(at.group, { in_use: 0 });
  });

  it.each(['gzip', 'brotli', 'zstd'])('is found in a stream in %s', async (packing) => {
    const at = await newScene({ errorAfterChunks: 2, [packing]: true });
    const response = await ask(at);
    expect(response.headers.get('headgate-tries')).toBe('1');
    await response.arrayBuffer();
    await untilStatus(at.group, { in_use: 0, refusals_total: { overload: 1 } });
  });

  it('is found in an answer that is not a stream and arrives too late to be held back', async () => {
    const late = { contentLength: false, silentAfterChunks: 0, errorAfterChunks: 0 };
    const at = await newScene(late);
    // The headers come once the beginning was held back for long enough.
    const response = await ask(at, CHAT, { stream: false });
    await at.strict.resume();
    expect(await response.text()).toContain('server_is_overloaded');
    await untilStatus(at.group, { in_use: 0, refusals_total: { overload: 1 } });
  });

  it('is found in a stream whose tokens are counted', async () => {
    const limits = { max_concurrency: 3, tpm: 1_000_000 };
    const at = await newScene({ errorAfterChunks: 2 }, { limits });
    expect(await (await ask(at)).text()).toContain('server_is_overloaded');
    await untilStatus(at.group, { in_use: 0, refusals_total: { overload: 1 } });
  });
});

describe('the events before the first content', () => {
  it('are passed on after a moment, and later events as they arrive', async () => {
    const at = await newScene({ atContent: true, silentAfterChunks: 0 });
    const response = await ask(at);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toContain('"role":"assistant"');
    await at.strict.resume();
    let rest = '';
    for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
      rest += read.value;
    }
    expect(rest).toContain('[DONE]');
    expect(rest).not.toContain('"role":"assistant"');
    await untilStatus(at.group, { in_use: 0 });
  });

  it('do not delay content', async () => {
    const at = await newScene({ silentAfterChunks: 1 });
    const response = await ask(at);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!/"content":"[^"]/.test(text)) text += (await reader?.read())?.value ?? '';
    expect((await at.strict.stats()).inFlight).toBe(1);
    await at.strict.resume();
    await reader?.cancel();
    await untilStatus(at.group, { in_use: 0 });
  });

  it('reach the caller if the connection breaks after them, and the call is not retried', async () => {
    const at = await newScene({ atContent: true, breakAfterChunks: 0 });
    const response = await ask(at);
    expect([response.status, response.headers.get('headgate-tries')]).toEqual([200, '1']);
    const end = response.text().then(
      () => 'done',
      () => 'cut',
    );
    expect(await end).toBe('cut');
    await untilStatus(at.group, { in_use: 0 });
  });

  it('free their slot if the caller disconnects', async () => {
    const at = await newScene({ atContent: true, silentAfterChunks: 0 });
    const client = new AbortController();
    const answer = ask(at, CHAT, {}, client.signal).catch(() => null);
    await until(async () => expect((await at.strict.stats()).inFlight).toBe(1));
    client.abort();
    await answer;
    await untilStatus(at.group, { in_use: 0, queued: 0 });
    await until(async () => expect((await at.strict.stats()).inFlight).toBe(0));
  });
});

it('an answer that quotes an error is not a refusal', async () => {
  const at = await newScene({});
  const quoted = 'data: {"error":{"code":429,"message":"Rate limit"}}';
  for (const stream of [true, false]) {
    const messages = [{ role: 'user', content: quoted }];
    const response = await ask(at, CHAT, { messages, stream });
    expect([response.status, response.headers.get('headgate-tries')]).toEqual([200, '1']);
    await response.text();
  }
  await untilStatus(at.group, { in_use: 0, refusals_total: {} });
});
