// Where an upstream is told so, an OpenAI stream is asked for its usage on behalf of a caller who did not
// ask, who sees nothing of that.
import { afterAll, beforeEach, expect, it } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import type { Settings } from '../support/strict.ts';
import { CHAT, chatBody, COUNTING, newScene, post, untilCounted, type Scene } from './scene.ts';

afterAll(nothingLeaks);

const USAGE: Settings = { chunks: 6, inputTokens: 70, cachedTokens: 20, outputTokens: 44 };

const PLAIN = chatBody('one two three', { stream: true });
const ASKING = chatBody('one two three', { stream: true, stream_options: { include_usage: true } });
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

/** What the usage looks like that a stream ends with if it was asked for. */
const CHUNK = '"choices":[],"usage":{';

it('the answer of one who did not ask lacks the extra chunk and is otherwise the same', async () => {
  const text = await through(PLAIN);
  const asked = await straight(ASKING);
  expect(asked).toContain(CHUNK);
  const events = asked.split('\n\n');
  expect(text).toBe(events.filter((event) => !event.includes(CHUNK)).join('\n\n'));
  expect(text).toContain('data: [DONE]');
  await untilCounted(scene.group, { requests: 1, inputTokens: 70, outputTokens: 44, usd: 0.00055 });
});

it('the body of the call is otherwise the same', async () => {
  const sent = PLAIN.replace('{', '{"stream_options":{"include_usage":true},');
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(sent));
  const echo = JSON.parse(await through(PLAIN, { 'x-strict-echo': '1' })) as { sha256: string };
  expect(echo.sha256).toBe(new Uint8Array(digest).toHex());
});

it.each([
  ['one who asked keeps it', ASKING],
  ['an answer that is no stream stays as it is', WHOLE],
])('%s', async (_, body) => {
  expect(await through(body)).toBe(await straight(body));
});

it('a second try lacks it too', async () => {
  const once = await through(PLAIN);
  await scene.strict.failNext('concurrency', 2);
  const response = await post(`/up${CHAT}`, PLAIN);
  expect(response.headers.get('headgate-tries')).toBe('3');
  expect(await response.text()).toBe(once);
  expect(once).not.toContain(CHUNK);
});

it('an answer that is refused stays as it is', async () => {
  const response = await post(`/up${CHAT}`, PLAIN, { headers: { 'x-strict-status': '400' } });
  const same = await fetch(scene.strict.url + CHAT, {
    method: 'POST',
    body: PLAIN,
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
    const { bodyBytes } = JSON.parse(await through(PLAIN)) as { bodyBytes: number };
    expect(bodyBytes).toBe(PLAIN.length);
    await scene.strict.configure({ echo: false });
    expect(await through(PLAIN)).toBe(await straight(PLAIN));
  }
});
