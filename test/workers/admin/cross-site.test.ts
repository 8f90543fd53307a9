// A web page of another site cannot change anything in Headgate, with a simple request or from the browser's network.
import { beforeAll, describe, expect, it } from 'vitest';
import { call, configure } from '../support/worker.ts';

const APP = 'https://app.example';
const DESKTOP = 'app://obsidian.md';
const OURS = 'https://headgate.test';
const ADMIN = { authorization: 'Bearer test-admin-token' };
const JSON_TYPE = { 'content-type': 'application/json' };

beforeAll(() =>
  configure({
    groups: [{ name: 'leased', limits: { max_concurrency: 100 } }],
    cors_origins: [APP, DESKTOP],
    leases: 'open',
  }),
);

type CrossSiteRoute = readonly [method: string, path: string, body: string | null];

/** One route of each kind that changes something, with a valid body. */
const ROUTES: readonly CrossSiteRoute[] = [
  ['POST', '/leases', '{"group":"leased"}'],
  ['PUT', '/leases/none', null],
  ['PATCH', '/leases/none', '{"status":200}'],
  ['DELETE', '/leases/none', '{}'],
  ['DELETE', '/tickets/none', null],
  ['POST', '/webhooks/openai', '{}'],
  ['POST', '/admin/api/session', '{"token":"test-admin-token"}'],
  ['DELETE', '/admin/api/session', null],
  ['POST', '/admin/api/tester', '{"model":"m"}'],
  ['POST', '/admin/api/groups/leased/relearn', null],
  ['POST', '/admin/api/groups/leased/pause', '{}'],
  ['POST', '/admin/api/groups/leased/resume', '{}'],
  ['PATCH', '/admin/api/groups/leased', '{"note":"n"}'],
  ['PUT', '/admin/api/groups/other', '{}'],
  ['POST', '/admin/api/no-such-route', '{}'],
];

interface CrossSiteAnswer {
  readonly status: number;
  readonly text: string;
}

async function send(
  [method, path, body]: CrossSiteRoute,
  headers: Record<string, string>,
): Promise<CrossSiteAnswer> {
  const own = path.startsWith('/admin') ? ADMIN : {};
  const init = body === null ? {} : { body };
  const response = await call(path, { method, headers: { ...own, ...headers }, ...init });
  return { status: response.status, text: await response.text() };
}

/** Headers that a browser sends for a page of another site, or without a site. */
const FOREIGN: readonly Record<string, string>[] = [
  { origin: 'https://evil.example' },
  { origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' },
  { origin: 'null' },
  { origin: 'app://headgate.test' },
  { origin: `${DESKTOP}.evil` },
  { origin: 'https://headgate.test.evil.example' },
  { origin: 'https://headgate.test:8443' },
  { origin: 'not a url' },
  { origin: `${OURS}, https://evil.example` },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'Cross-Site' },
  { 'sec-fetch-site': 'same-site' },
  { origin: OURS, 'sec-fetch-site': 'cross-site' },
  { origin: 'https://other.headgate.test', 'sec-fetch-site': 'same-site' },
];

describe.each(ROUTES)('%s %s', (...route) => {
  it.each(FOREIGN)('refuses a page that sends %o', async (headers) => {
    const answer = await send(route, { ...JSON_TYPE, ...headers });
    expect(answer.status).toBe(403);
    expect(answer.text).toContain('cors_origins');
  });

  it.each([
    {},
    { 'sec-fetch-site': 'none' },
    { origin: APP, 'sec-fetch-site': 'cross-site' },
    { origin: DESKTOP, 'sec-fetch-site': 'cross-site' },
    { origin: OURS, 'sec-fetch-site': 'same-origin' },
    { origin: 'http://headgate.test' },
  ])('serves a client that is no page of another site: %o', async (headers) => {
    const answer = await send(route, { ...JSON_TYPE, ...(headers as Record<string, string>) });
    expect(answer.text).not.toContain('web page of another site');
    expect(answer.status).not.toBe(415);
  });
});

const WITH_BODY = ROUTES.filter(
  ([, path, body]) => body !== null && !/openai|no-such-route/.test(path),
);

describe.each(WITH_BODY)('%s %s', (...route) => {
  it.each([
    'text/plain',
    'text/plain; application/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=application/json',
    'application/jsonp',
    'application/json, text/plain',
    'text/json',
  ])('refuses a body of type %s', async (type) => {
    const answer = await send(route, { 'content-type': type });
    expect(answer.status).toBe(415);
    expect(answer.text).toContain('Content-Type');
    expect(answer.text).toContain('application/json');
  });

  it('refuses a body without a type, which a page sends as a blob', async () => {
    const [method, path, body] = route;
    const headers = path.startsWith('/admin') ? ADMIN : {};
    const bytes = new TextEncoder().encode(body ?? '');
    const streamed = new Response(bytes).body;
    for (const sent of [bytes, streamed]) {
      const response = await call(path, { method, headers, body: sent as BodyInit });
      expect(response.status).toBe(415);
      expect(await response.text()).toContain('`Content-Type` header is missing');
    }
  });

  it.each(['application/json; charset=utf-8', 'Application/JSON', 'application/merge-patch+json'])(
    'reads a body of type %s',
    async (type) => {
      expect((await send(route, { 'content-type': type })).status).not.toBe(415);
    },
  );
});

it('only the admin API accepts YAML', async () => {
  const headers = { 'content-type': 'application/yaml' };
  expect((await send(['PUT', '/admin/api/groups/other', '{}'], headers)).status).toBeLessThan(300);
  expect((await send(['POST', '/leases', '{}'], headers)).status).toBe(415);
});

it('an empty body needs no type', async () => {
  const empty = new Response(new Uint8Array()).body;
  for (const body of ['', empty]) {
    const response = await call('/admin/api/groups/leased/relearn', {
      method: 'POST',
      headers: { ...ADMIN, 'content-type': 'text/plain' },
      body: body as BodyInit,
    });
    expect(response.status).not.toBe(415);
    await response.text();
  }
});

it('a page of a listed origin may read why its lease was refused', async () => {
  const headers = { origin: APP, 'content-type': 'text/plain' };
  const response = await call('/leases', { method: 'POST', headers, body: '{"group":"leased"}' });
  expect(response.status).toBe(415);
  expect(response.headers.get('access-control-allow-origin')).toBe(APP);
  expect(response.headers.get('headgate-reason')).toBe('content_type_unsupported');
  await response.text();
});
