// Who may ask: the token, admin keys and their roles, sessions by cookie, and how wrong tokens are
// slowed down.
import { sign } from 'hono/jwt';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { openApiDocument } from '../../../dashboard/api-docs/openapi.ts';
import { ADMIN_ROLES, type AdminRole } from '../../../src/contract/config/keys.ts';
import { directoryOf, type Env } from '../../../src/env.ts';
import { createAdminRoutes } from '../../../src/admin/routes.ts';
import { env, worker } from '../support/worker.ts';
import { asAdmin, bodyOf, clientOf, clientWith } from './ask.ts';

const ORIGIN = 'https://headgate.test';
const API = `${ORIGIN}/admin/api`;
const HMAC = { name: 'HMAC', hash: 'SHA-256' };

beforeEach(async () => {
  const { version = 0, config } = (await directoryOf(env).snapshot(null)) ?? {};
  if (config === undefined) return;
  const empty = { ...config, groups: [], keys: [], admin_keys: [] };
  await directoryOf(env).replace(empty, version, 'test', 'reset');
});

async function keyOf(role: AdminRole, id: string = role, expires_at: string | null = null) {
  const made = await asAdmin('POST /admin-keys', { body: { id, role, expires_at } });
  return bodyOf(made).secret;
}

async function signIn(token: string, headers: Record<string, string> = {}, origin = ORIGIN) {
  return worker.fetch(`${origin}/admin/api/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ token }),
  });
}

/** The cookie as a browser would send it back. */
function cookieOf(response: { headers: { get(name: string): string | null } }): string {
  return response.headers.get('set-cookie')?.split(';')[0] ?? '';
}

describe('a key of the admin API', () => {
  it('is shown once, stored as its hash, and found in no answer or log', async () => {
    const secret = await keyOf('viewer');
    expect(secret).toMatch(/^hga_[0-9a-f]{48}$/);
    const bare = secret.slice('hga_'.length);
    const [keys, audit] = [await asAdmin('GET /admin-keys'), await asAdmin('GET /audit')];
    const stored = await directoryOf(env).snapshot(null);
    for (const text of [keys, audit, stored]) expect(JSON.stringify(text)).not.toContain(bare);
    const hash = stored?.config.admin_keys[0]?.hash ?? '';
    expect(hash).toMatch(/^sha256:/);
    for (const text of [keys, audit]) expect(JSON.stringify(text)).not.toContain(hash);
    expect(bodyOf(keys).admin_keys).toMatchObject([
      { id: 'viewer', role: 'viewer', state: 'active' },
    ]);
  });

  it('is named in the audit log', async () => {
    const operator = clientOf(await keyOf('operator', 'night-shift'));
    await asAdmin('PUT /groups/{name}', { params: { name: 'a' }, body: {} });
    await operator('POST /groups/{name}/pause', { params: { name: 'a' } });
    const { entries } = bodyOf(await asAdmin('GET /audit', { query: { limit: 2 } }));
    expect(entries).toMatchObject([
      {
        actor: 'night-shift',
        action: 'group a: pause',
        changes: [{ path: 'groups[a].paused', from: false, to: true }],
      },
      { actor: 'admin-token', action: 'group a: put' },
    ]);
  });

  it('opens nothing once it has expired or was removed', async () => {
    const past = clientOf(await keyOf('admin', 'past', '2026-01-01T00:00:00Z'));
    expect((await past('GET /session')).status).toBe(401);
    const gone = clientOf(await keyOf('admin', 'gone'));
    expect((await gone('GET /session')).status).toBe(200);
    bodyOf(await asAdmin('DELETE /admin-keys/{id}', { params: { id: 'gone' } }));
    expect((await gone('GET /session')).status).toBe(401);
  });

  it('cannot be made twice under one id', async () => {
    await keyOf('viewer');
    const again = await asAdmin('POST /admin-keys', { body: { id: 'viewer', role: 'admin' } });
    expect(again.status).toBe(409);
  });

  it('stays when a configuration is put that does not mention any', async () => {
    const viewer = clientOf(await keyOf('viewer'));
    bodyOf(await asAdmin('PUT /config', { body: { groups: [{ name: 'a' }] } }));
    expect((await viewer('GET /session')).status).toBe(200);
    bodyOf(await asAdmin('PUT /config', { body: { admin_keys: [] } }));
    expect((await viewer('GET /session')).status).toBe(401);
  });
});

describe('roles', () => {
  const operations = Object.entries(openApiDocument().paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, description }]) => ({
      id: operationId,
      method: method.toUpperCase(),
      path: path.replace(/\{\w+\}/g, 'nobody'),
      needed: /Role: (\w+)\.$/.exec(description)?.[1] as AdminRole | undefined,
    })),
  );

  /** Written down once more on purpose: a route whose role changes must be changed here too. */
  const OPERATOR = [
    'pauseGroup',
    'drainGroup',
    'resumeGroup',
    'relearnGroup',
    'takeOutMember',
    'bringBackMember',
    'releaseLease',
    'releaseLeases',
    'cancelWaiters',
    'switchGroups',
    'pauseEverything',
    'resumeEverything',
    'cancelWaiter',
    'promoteWaiter',
    'fingerprint',
  ];

  it('are these: who looks only reads, who operates changes no configuration but switches', () => {
    const ids = (role: AdminRole) =>
      operations.filter(({ needed }) => needed === role).map(({ id }) => id);
    expect(ids('operator').toSorted()).toEqual(OPERATOR.toSorted());
    const changes = operations.filter(({ method }) => method !== 'GET').map(({ id }) => id);
    // These are asked with a body, and change nothing.
    expect(ids('viewer').filter((id) => changes.includes(id))).toEqual([
      'previewGroup',
      'testCall',
    ]);
    const open = operations.filter(({ needed }) => needed === undefined).map(({ id }) => id);
    expect(open.toSorted()).toEqual(['getDocs', 'getOpenApi', 'signIn', 'signOut']);
  });

  /** Reads the answer; of a stream that never ends, nothing. */
  async function textOf(response: Response): Promise<string> {
    const type = response.headers.get('content-type') ?? '';
    if (!type.startsWith('text/event-stream')) return response.text();
    await response.body?.cancel();
    return '';
  }

  it.each(ADMIN_ROLES)('%s may do what it may, and gets 403 for the rest', async (role) => {
    const headers = { authorization: `Bearer ${await keyOf(role)}` };
    const rank = ADMIN_ROLES.indexOf(role);
    for (const { id, method, path, needed } of operations) {
      if (needed === undefined) continue;
      const response = await worker.fetch(API + path, { method, headers });
      const text = await textOf(response);
      const isAllowed = rank >= ADMIN_ROLES.indexOf(needed);
      const isRefused = response.status === 403 && text.includes(`requires the role \`${needed}\``);
      expect({ id, isRefused, text }).toEqual({ id, isRefused: !isAllowed, text });
      expect({ id, status: response.status }).not.toEqual({ id, status: 401 });
    }
  });
});

describe('a session', () => {
  it('is a cookie that scripts and other sites do not get', async () => {
    const response = await signIn('test-admin-token');
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      actor: 'admin-token',
      role: 'admin',
      via: 'session',
    });
    const cookie = response.headers.get('set-cookie') ?? '';
    for (const part of ['HttpOnly', 'SameSite=Strict', 'Secure', 'Path=/admin', 'Max-Age=28800']) {
      expect(cookie).toContain(part);
    }
    expect(cookie).not.toContain('test-admin-token');
  });

  it('is opened by a short body only, since it is read before anybody is known', async () => {
    const long = await signIn('x'.repeat(9_000));
    expect(long.status).toBe(413);
    expect(await long.json()).toMatchObject({
      detail: 'The body is too large. The maximum is 8192 bytes.',
    });
    expect((await signIn('\u{1F511}'.repeat(500))).status).toBe(401);
  });

  it.each([
    ['http://localhost:8787', false],
    ['http://127.0.0.1:8787', false],
    ['http://headgate.example.com', true],
    ['https://localhost', true],
  ])('is sent in clear only to the own machine: %s', async (origin, isSecure) => {
    const response = await signIn('test-admin-token', {}, origin);
    expect(/; Secure/.test(response.headers.get('set-cookie') ?? '')).toBe(isSecure);
  });

  it.each(['test-admin-token\n', ' test-admin-token', '\ttest-admin-token \r\n'])(
    'is opened by %j: white space at the ends of a token does not count',
    async (token) => {
      expect((await signIn(token)).status).toBe(200);
    },
  );

  it.each([' ', 'test-admin -token'])('is not opened by %j', async (token) => {
    expect((await signIn(token, { 'cf-connecting-ip': '192.0.2.31' })).status).toBe(401);
  });

  it('has the rights of its key, until the key is removed', async () => {
    const cookie = cookieOf(await signIn(await keyOf('operator')));
    const browser = clientWith({ cookie });
    expect(bodyOf(await browser('GET /session'))).toMatchObject({
      actor: 'operator',
      role: 'operator',
    });
    expect((await browser('GET /config')).status).toBe(403);
    bodyOf(await asAdmin('DELETE /admin-keys/{id}', { params: { id: 'operator' } }));
    expect((await browser('GET /session')).status).toBe(401);
  });

  it('ends with the key that it was opened by, though another one has its id', async () => {
    const browser = clientWith({ cookie: cookieOf(await signIn(await keyOf('admin', 'same'))) });
    bodyOf(await asAdmin('DELETE /admin-keys/{id}', { params: { id: 'same' } }));
    await keyOf('admin', 'same');
    expect((await browser('GET /session')).status).toBe(401);
  });

  it.each([
    ['that is none', 'headgate_session=abc'],
    ['that nobody signed', 'headgate_session=eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbi10b2tlbiJ9.'],
  ])('%s opens nothing', async (_what, cookie) => {
    expect((await clientWith({ cookie })('GET /session')).status).toBe(401);
  });

  it('that was changed, or has ended, opens nothing', async () => {
    const cookie = cookieOf(await signIn('test-admin-token'));
    const [head = '', body = '', mark = ''] = cookie.split('=')[1]?.split('.') ?? [];
    const claims = JSON.parse(atob(body.replaceAll('-', '+').replaceAll('_', '/')));
    const later = btoa(JSON.stringify({ ...claims, exp: claims.exp + 1 })).replaceAll('=', '');
    const forged = clientWith({ cookie: `headgate_session=${head}.${later}.${mark}` });
    expect((await forged('GET /session')).status).toBe(401);
    vi.useFakeTimers({ toFake: ['Date'], now: (claims.exp + 1) * 1_000 });
    try {
      const app = createAdminRoutes();
      const ended = await app.fetch(new Request(`${ORIGIN}/session`, { headers: { cookie } }), env);
      expect(ended.status).toBe(401);
    } finally {
      vi.useRealTimers();
    }
  });

  it('cannot be forged with the data that the directory stores', async () => {
    const secret = await keyOf('admin', 'night');
    const { sessionKey, adminKeys } = await directoryOf(env).adminAccess();
    const mark = adminKeys[0]?.hash.slice('sha256:'.length, 'sha256:'.length + 16);
    const claims = { sub: 'night', for: mark, exp: Math.floor(Date.now() / 1_000) + 3_600 };
    // The stored text and its decoded bytes.
    const bytes = Uint8Array.fromBase64(sessionKey);
    const raw = await crypto.subtle.importKey('raw', bytes, HMAC, false, ['sign']);
    for (const key of [sessionKey, raw]) {
      const forged = clientWith({ cookie: `headgate_session=${await sign(claims, key, 'HS256')}` });
      expect((await forged('GET /session')).status).toBe(401);
    }
    // The same claims under the real key open it.
    const own = clientWith({ cookie: cookieOf(await signIn(secret)) });
    expect((await own('GET /session')).status).toBe(200);
  });

  it('ends with another ADMIN_TOKEN, also if an admin key opened it', async () => {
    const cookies = [await keyOf('admin', 'night'), 'test-admin-token'].map(async (token) =>
      cookieOf(await signIn(token)),
    );
    const app = createAdminRoutes();
    for (const cookie of await Promise.all(cookies)) {
      const statusWith = async (token: string | undefined) => {
        const request = new Request(`${ORIGIN}/session`, { headers: { cookie } });
        return (await app.fetch(request, { ...env, ADMIN_TOKEN: token } as Env)).status;
      };
      expect(await statusWith('test-admin-token')).toBe(200);
      expect(await statusWith('another-admin-token')).toBe(401);
      expect(await statusWith(undefined)).toBe(403);
    }
  });

  it('changes something only from a page of its own, and with the header', async () => {
    const cookie = cookieOf(await signIn('test-admin-token'));
    const put = (headers: Record<string, string>) =>
      clientWith({ cookie, ...headers })('PUT /groups/{name}', { params: { name: 'a' }, body: {} });
    const header = { 'headgate-admin': '1' };
    expect((await put({})).status).toBe(403);
    expect((await put({ origin: ORIGIN })).status).toBe(403);
    expect((await put(header)).status).toBe(403);
    expect((await put({ ...header, origin: 'null' })).status).toBe(403);
    expect((await put({ ...header, origin: 'https://evil.test' })).status).toBe(403);
    expect((await put({ ...header, origin: 'https://headgate.test.evil.test' })).status).toBe(403);
    expect((await put({ ...header, origin: ORIGIN })).status).toBe(201);
    // Behind a proxy that ends TLS the scheme is another one.
    expect((await put({ ...header, origin: 'http://headgate.test' })).status).toBe(200);
    // A token does not help such a page either.
    const token = { authorization: 'Bearer test-admin-token', origin: 'https://evil.test' };
    expect((await put(token)).status).toBe(403);
  });

  it('is opened by a page of its own only', async () => {
    expect((await signIn('test-admin-token', { origin: 'https://evil.test' })).status).toBe(403);
    expect((await signIn('test-admin-token', { origin: ORIGIN })).status).toBe(200);
  });

  it('is taken back', async () => {
    const response = await worker.fetch(`${API}/session`, { method: 'DELETE' });
    expect(response.status).toBe(200);
    expect(response.headers.get('set-cookie')).toMatch(/^headgate_session=;.*Max-Age=0/);
  });

  it('is refused to a wrong token, and where no ADMIN_TOKEN is set', async () => {
    expect((await signIn('wrong', { 'cf-connecting-ip': '192.0.2.9' })).status).toBe(401);
    const { ADMIN_TOKEN: _token, ...closed } = env;
    for (const bindings of [closed, { ...closed, ADMIN_TOKEN: '' }]) {
      const body = JSON.stringify({ token: 'x' });
      const headers = { 'content-type': 'application/json' };
      const request = new Request(`${ORIGIN}/session`, { method: 'POST', headers, body });
      const response = await createAdminRoutes().fetch(request, bindings);
      expect(response.status).toBe(403);
      expect(await response.text()).toContain('npx wrangler secret put ADMIN_TOKEN');
    }
  });

  it('is refused to an empty token where an empty one is set, which is none', async () => {
    const headers = { authorization: 'Bearer ' };
    const request = new Request(`${ORIGIN}/config`, { headers });
    const response = await createAdminRoutes().fetch(request, { ...env, ADMIN_TOKEN: '' });
    expect(response.status).toBe(403);
  });
});

describe('wrong tokens', () => {
  async function attempt(token: string, address: string, bindings: Env = env, cf = {}) {
    const headers = { authorization: `Bearer ${token}`, 'cf-connecting-ip': address };
    const began = performance.now();
    const request = new Request(`${ORIGIN}/session`, { headers, cf });
    const response = await createAdminRoutes().fetch(request, bindings);
    return { status: response.status, headers: response.headers, ms: performance.now() - began };
  }

  /** The directory counts; a test need not make them all. */
  async function failedBefore(address: string, times: number): Promise<void> {
    for (let at = 0; at < times; at++) await directoryOf(env).failedAttempt(address);
  }

  it('are answered later and later, and the right one at once', async () => {
    await failedBefore('192.0.2.1', 7);
    const wrong = await attempt('wrong', '192.0.2.1');
    expect(wrong.status).toBe(401);
    expect(wrong.ms).toBeGreaterThan(390); // the third beyond the free ones: 100, 200, 400 ms
    // This one waits for two seconds. The right one comes after it, and is answered before it.
    await failedBefore('192.0.2.11', 15);
    const ends: number[] = [];
    const end = async (token: string): Promise<void> => {
      ends.push((await attempt(token, '192.0.2.11')).status);
    };
    await Promise.all([end('wrong'), end('test-admin-token')]);
    expect(ends).toEqual([200, 401]);
  });

  it('shut their address out for seconds, and nobody else', async () => {
    await failedBefore('192.0.2.2', 19);
    expect((await attempt('wrong', '192.0.2.2')).status).toBe(401);
    const shut = await attempt('test-admin-token', '192.0.2.2');
    expect(shut.status).toBe(429);
    expect(Number(shut.headers.get('retry-after'))).toBeLessThanOrEqual(10);
    expect((await attempt('test-admin-token', '192.0.2.3')).status).toBe(200);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10_001 });
    try {
      expect((await attempt('test-admin-token', '192.0.2.2')).status).toBe(200);
    } finally {
      vi.useRealTimers();
    }
  });

  it('shut out all addresses of IPv6 that begin with the same 64 bits, and no other', async () => {
    await failedBefore('2001:db8:0:7::/64', 19);
    expect((await attempt('wrong', '2001:db8:0:7::1')).status).toBe(401);
    expect((await attempt('test-admin-token', '2001:db8:0:7:1:2:3:4')).status).toBe(429);
    expect((await attempt('test-admin-token', '2001:db8:0:8::1')).status).toBe(200);
  });

  it('are slowed down at the metrics too, which the same token opens', async () => {
    const scrape = (token: string) =>
      worker.fetch(`${ORIGIN}/metrics`, {
        headers: { authorization: `Bearer ${token}`, 'cf-connecting-ip': '192.0.2.60' },
      });
    await failedBefore('192.0.2.60', 19);
    expect((await scrape('wrong')).status).toBe(401);
    expect((await scrape('test-admin-token')).status).toBe(429);
  });

  const hosted: Env = { ...env, BOOT_ID: 'self-hosted' };

  it('shut nobody out where an address may be a proxy that all come through', async () => {
    await failedBefore('192.0.2.5', 25);
    const reported = { clientIp: '192.0.2.5' };
    expect((await attempt('wrong', '192.0.2.4', hosted, reported)).status).toBe(401);
    expect((await attempt('test-admin-token', '192.0.2.4', hosted, reported)).status).toBe(200);
    // The wrong one counted for the address that the forwarder tells, as this does.
    expect(await directoryOf(env).failedAttempt('192.0.2.5')).toBe(27);
  });

  it('count for everybody where nobody tells the address, whatever the caller writes', async () => {
    await failedBefore('everybody', 25);
    expect((await attempt('wrong', '192.0.2.4', hosted)).status).toBe(401);
    expect((await attempt('test-admin-token', '192.0.2.4', hosted)).status).toBe(200);
  });
});
