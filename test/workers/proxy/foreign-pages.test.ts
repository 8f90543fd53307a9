// A web page of another site may not use an upstream that needs no key from a browser's network.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { call, configure } from '../support/worker.ts';

const APP = 'https://app.example';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('foreign-pages');
  const base_url = strict.url;
  await configure({
    upstreams: [
      { id: 'box', base_url, auth: 'none', websocket: 'session' },
      { id: 'turns', base_url, auth: 'none', websocket: 'turns' },
      { id: 'open', base_url },
      { id: 'far', base_url, auth: 'none' },
    ],
    groups: [
      {
        name: 'spilling',
        match: { upstreams: ['open'], models: ['spilled'] },
        limits: { max_concurrency: 0 },
        on_saturated: { spill_to: ['far'] },
      },
    ],
    cors_origins: [APP],
  });
});

afterAll(nothingLeaks);

const EVIL = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
const BODY = '{"model":"m","messages":[]}';

async function send(method: string, path: string, headers: Record<string, string>) {
  const body = method === 'POST' ? { body: BODY } : {};
  const response = await call(path, { method, headers, ...body });
  await response.text();
  return [response.status, response.headers.get('headgate-reason')];
}

describe('an upstream that needs no key', () => {
  it.each([
    ['POST', '/box/v1/chat/completions', EVIL],
    ['POST', '/box/v1/chat/completions', { ...EVIL, 'content-type': 'text/plain' }],
    ['POST', '/box/v1/chat/completions', { origin: 'null' }],
    ['POST', '/box/v1/chat/completions', { 'sec-fetch-site': 'same-site' }],
    ['POST', '/box/v1/chat/completions', { ...EVIL, authorization: 'Bearer sk-any' }],
    ['GET', '/box/v1/models', { 'sec-fetch-site': 'cross-site' }],
    ['DELETE', '/box/v1/files/x', EVIL],
    ['OPTIONS', '/box/v1/models', EVIL],
    ['GET', '/box/v1/realtime?model=m', { ...EVIL, upgrade: 'websocket' }],
    ['GET', '/turns/v1/responses', { ...EVIL, upgrade: 'websocket' }],
  ])('refuses %s %s of a page that sends %o', async (method, path, headers) => {
    const before = (await strict.stats()).total;
    expect(await send(method, path, headers as Record<string, string>)).toEqual([
      403,
      'origin_forbidden',
    ]);
    expect((await strict.stats()).total).toBe(before);
  });

  it.each([
    ['POST', '/box/v1/chat/completions', {}],
    ['POST', '/box/v1/chat/completions', { origin: APP, 'sec-fetch-site': 'cross-site' }],
    ['POST', '/box/v1/chat/completions', { origin: 'https://headgate.test' }],
    ['GET', '/box/v1/models', { 'sec-fetch-site': 'none' }],
  ])('serves %s %s with %o', async (method, path, headers) => {
    const [status, reason] = await send(method, path, headers as Record<string, string>);
    expect([status, reason]).toEqual([200, null]);
  });
});

describe('an upstream that takes the keys of callers', () => {
  it('serves a page with a key', async () => {
    const headers = { ...EVIL, authorization: 'Bearer sk-of-the-page' };
    expect(await send('POST', '/open/v1/chat/completions', headers)).toEqual([200, null]);
  });

  it('refuses a page without a key, and answers its preflight', async () => {
    expect(await send('POST', '/open/v1/chat/completions', EVIL)).toEqual([
      403,
      'origin_forbidden',
    ]);
    const [, reason] = await send('OPTIONS', '/open/v1/chat/completions', EVIL);
    expect(reason).toBeNull();
  });
});

it('a call of such a page does not spill to an upstream that needs no key', async () => {
  const before = (await strict.stats()).total;
  const headers = { ...EVIL, authorization: 'Bearer sk-of-the-page', 'headgate-max-wait': '0' };
  const body = BODY.replace('"m"', '"spilled"');
  const response = await call('/open/v1/chat/completions', { method: 'POST', headers, body });
  expect(response.status).toBeGreaterThan(399);
  await response.text();
  expect((await strict.stats()).total).toBe(before);
});
