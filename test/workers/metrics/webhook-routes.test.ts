/** The webhook by its own routes, and a receiver that really gets what is sent. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SERVED } from '../../../src/core/words/signal.ts';
import { pool, request } from '../support/pool.ts';
import { admin, change, configure, until } from '../support/worker.ts';
import { clientOf, asAdmin, bodyOf } from '../admin/ask.ts';

const SLACK = 'https://hooks.slack.example/services/T000/B000/hush';

/** Everything that receivers were sent. */
const sent: { readonly url: string; readonly headers: Headers; readonly body: string }[] = [];
let answer: () => Response;

beforeEach(async () => {
  sent.length = 0;
  answer = () => new Response('ok');
  const real = globalThis.fetch;
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const asked = new Request(input as string, init as RequestInit);
    if (!/^https:\/\/(hooks\.slack|ops)\.example\//.test(asked.url)) return real(input, init);
    sent.push({ url: asked.url, headers: asked.headers, body: await asked.text() });
    return answer();
  });
  await configure({ groups: [{ name: 'told', limits: { max_concurrency: 5 } }] });
});
afterEach(() => vi.restoreAllMocks());

async function verified({ headers, body }: (typeof sent)[number], secret: string) {
  const encoder = new TextEncoder();
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, [
    'verify',
  ]);
  const [, base64 = ''] = (headers.get('webhook-signature') ?? '').split(',');
  const given = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const said = `${headers.get('webhook-id')}.${headers.get('webhook-timestamp')}.${body}`;
  return crypto.subtle.verify('HMAC', key, given, encoder.encode(said));
}

async function warn(ticket: string): Promise<void> {
  const asked = await pool('told').acquire(request('told', ticket));
  if (asked.kind !== 'granted') throw new Error(asked.kind);
  await asked.lease.report({ ...SERVED, kind: 'quota' }, false);
  await asked.lease.release('refused', 429);
}

it('is set, tested, changed without its address, and taken away', async () => {
  expect((await admin('GET', '/webhook')).json.webhook).toBeNull();
  expect((await admin('POST', '/webhook/test')).status).toBe(409);
  const put = { url: 'https://ops.example/hook?key=hush', secret: 'WEBHOOK_TEST' };
  await change('PUT', '/webhook', put);
  const shown = {
    address: 'https://ops.example/(hidden)',
    secret: 'WEBHOOK_TEST',
    format: 'generic',
    kinds: null,
    is_secret_set: true,
    secret_fault: null,
  };
  expect((await admin('GET', '/webhook')).json.webhook).toEqual(shown);
  answer = () => new Response('thank you', { status: 202 });
  expect((await admin('POST', '/webhook/test')).json).toMatchObject({
    delivered: true,
    status: 202,
    answer: 'thank you',
    error: null,
  });
  const [test] = sent;
  expect(test?.url).toBe(put.url);
  expect(JSON.parse(test?.body ?? '')).toMatchObject({ type: 'headgate.test' });
  if (test === undefined) throw new Error('nothing was sent');
  expect(await verified(test, 'webhook-secret-4712')).toBe(true);
  expect(await verified({ ...test, body: `${test.body} ` }, 'webhook-secret-4712')).toBe(false);
  const kinds = { secret: 'WEBHOOK_TEST', kinds: ['budget_spent'] };
  expect((await change('PUT', '/webhook', kinds)).json.webhook).toEqual({ ...shown, ...kinds });
  await admin('POST', '/webhook/test');
  expect(sent.map(({ url }) => url)).toEqual([put.url, put.url]);
  await change('DELETE', '/webhook');
  expect((await admin('GET', '/webhook')).json.webhook).toBeNull();
});

it('of Slack hears a warning, and its address is in no answer, audit or log', async () => {
  const lines: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  await change('PUT', '/webhook', { url: SLACK, format: 'slack' });
  await warn('a');
  await until(() => expect(sent).toHaveLength(1));
  expect(sent[0]?.url).toBe(SLACK);
  expect(JSON.parse(sent[0]?.body ?? '')).toEqual({
    text: expect.stringContaining('[told] quota exhausted: The upstream reports'),
    mrkdwn: false,
  });
  answer = () => new Response('invalid_token', { status: 403 });
  const tested = await admin('POST', '/webhook/test');
  expect(tested.json).toMatchObject({
    delivered: false,
    status: 403,
    answer: 'invalid_token',
    error: 'status 403',
  });
  const all = [await admin('GET', '/webhook'), await admin('GET', '/audit'), tested, lines];
  expect(JSON.stringify(all)).not.toContain('hush');
  expect(JSON.stringify(all)).toContain('hooks.slack.example/(hidden)');
});

it.each([
  [{ url: 'https://ops.example/hook' }, 'secret', 'is required for the format generic'],
  [{ format: 'slack' }, 'url', 'no webhook is configured'],
  [{ url: 'https://ops.example/', format: 'teams' }, 'format', 'slack'],
  [{ url: 'https://ops.example/', format: 'slack', kinds: [] }, 'kinds', ''],
  [{ url: 'https://ops.example/', secret: 'UPSTREAM_OPENAI' }, 'secret', 'WEBHOOK_'],
])('%j is refused at its field', async (body, path, message) => {
  const { status, json } = await admin('PUT', '/webhook', body);
  expect(status).toBe(422);
  expect(json.errors).toMatchObject([{ path, message: expect.stringContaining(message) }]);
});

it('warns of a secret that is not set, and a redirect goes nowhere', async () => {
  const put = { url: 'https://ops.example/hook', secret: 'WEBHOOK_NOBODY_SET' };
  expect((await change('PUT', '/webhook', put)).json).toMatchObject({
    warnings: [
      'Webhook: the secret `WEBHOOK_NOBODY_SET` is not set. Until it is set, no warnings are sent.',
    ],
    webhook: { is_secret_set: false, secret_fault: 'is not set' },
  });
  expect((await admin('POST', '/webhook/test')).json).toMatchObject({
    delivered: false,
    status: null,
    error: 'the secret `WEBHOOK_NOBODY_SET` is not set',
  });
  await change('PUT', '/webhook', { format: 'slack' });
  answer = () =>
    new Response(null, { status: 302, headers: { location: 'https://ops.example/x' } });
  expect((await admin('POST', '/webhook/test')).json).toMatchObject({ status: 302 });
  expect(sent).toHaveLength(1);
});

it('is seen by a viewer, without its address, and changed and tested by admins alone', async () => {
  await change('PUT', '/webhook', { url: SLACK, format: 'slack' });
  for (const role of ['viewer', 'operator'] as const) {
    const made = bodyOf(await asAdmin('POST /admin-keys', { body: { id: `w-${role}`, role } }));
    const ask = clientOf(made.secret);
    expect((await ask('GET /webhook')).status).toBe(200);
    expect((await ask('PUT /webhook', { body: { format: 'slack' } })).status).toBe(403);
    expect((await ask('DELETE /webhook')).status).toBe(403);
    expect((await ask('POST /webhook/test')).status).toBe(403);
  }
  expect(sent).toEqual([]);
});

it('the last warnings of all groups are told without asking them', async () => {
  await warn('b');
  await until(async () => {
    const { json } = await admin('GET', '/warnings?limit=1');
    expect(json.warnings).toMatchObject([{ kind: 'quota_exhausted', group: 'told' }]);
  });
  expect((await admin('GET', '/warnings?limit=201')).status).toBe(422);
});
