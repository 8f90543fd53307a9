// Pages of configured origins read the status and the admin API with a token, and nothing with a cookie. Others read nothing.
import { beforeAll, describe, expect, it } from 'vitest';
import { gatewayKeyHash } from '../../../src/runtime/secrets.ts';
import { call, configure } from '../support/worker.ts';

const APP = 'https://app.test';
const TOKEN = 'Bearer test-admin-token';

async function configureOrigins(cors_origins: string[]): Promise<void> {
  const keys = [{ id: 'mine', hash: await gatewayKeyHash('hg_mine') }];
  await configure({ cors_origins, keys, groups: [{ name: 'all' }] });
}

beforeAll(() => configureOrigins([APP]));

/** Headers of CORS on an answer, whose body is read. */
async function said(response: Response): Promise<Record<string, string>> {
  await response.body?.cancel();
  const all = [...response.headers].filter(
    ([name]) => name.startsWith('access-control-') || name === 'vary',
  );
  return Object.fromEntries(all.map(([name, value]) => [name, value.toLowerCase()]));
}

function preflight(path: string, origin: string, asked: string, method = 'GET') {
  const headers = {
    origin,
    'access-control-request-method': method,
    'access-control-request-headers': asked,
  };
  return call(path, { method: 'OPTIONS', headers });
}

async function cookie(): Promise<string> {
  const body = JSON.stringify({ token: 'test-admin-token' });
  const signedIn = await call('/admin/api/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  await signedIn.body?.cancel();
  return signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
}

describe('a page of a configured origin', () => {
  it('asks before with the headers of the admin API, and hears of no credentials', async () => {
    const answer = await preflight(
      '/admin/api/config',
      APP,
      'authorization, headgate-admin',
      'PUT',
    );
    expect(answer.status).toBe(204);
    const headers = await said(answer);
    expect(headers).toMatchObject({
      'access-control-allow-origin': APP,
      'access-control-allow-headers': 'authorization,content-type,if-match',
      'access-control-max-age': '600',
    });
    expect(headers['access-control-allow-methods']).toContain('put');
    expect(headers['vary']).toContain('origin');
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
  });

  it('reads answers of the admin API, and their version, and problems as well', async () => {
    const headers = { origin: APP, authorization: TOKEN };
    const answer = await call('/admin/api/groups', { headers });
    expect(answer.status).toBe(200);
    expect(await said(answer)).toEqual({
      'access-control-allow-origin': APP,
      'access-control-expose-headers': 'etag,retry-after,www-authenticate',
      vary: 'origin',
    });
  });

  it.each([
    [401, 'GET', '/admin/api/groups', { authorization: 'Bearer wrong' }],
    [404, 'GET', '/admin/api/groups/nowhere', {}],
    [404, 'GET', '/admin/api/nothing', {}],
    [405, 'DELETE', '/admin/api/groups', {}],
    [422, 'PUT', '/admin/api/groups/all', { 'content-type': 'application/json' }],
  ])('reads why it was answered with %d', async (status, method, path, more) => {
    const headers = { origin: APP, authorization: TOKEN, ...more };
    const body = method === 'PUT' ? JSON.stringify({ no_field: 1 }) : undefined;
    const answer = await call(path, { method, headers, ...(body !== undefined && { body }) });
    expect(answer.status).toBe(status);
    expect(await said(answer)).toMatchObject({
      'access-control-allow-origin': APP,
      vary: 'origin',
    });
  });

  it('changes something with a token', async () => {
    const answer = await call('/admin/api/groups/all/pause', {
      method: 'POST',
      headers: { origin: APP, authorization: TOKEN },
    });
    expect(answer.status).toBe(200);
    expect(await said(answer)).toMatchObject({ 'access-control-allow-origin': APP });
  });

  it('reads events as they happen', async () => {
    const answer = await call('/admin/api/events', {
      headers: { origin: APP, authorization: TOKEN },
    });
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    const reader = answer.body?.getReader();
    let text = '';
    while (!text.includes('event: snapshot')) {
      const { value } = (await reader?.read()) ?? {};
      expect(value).toBeDefined();
      text += new TextDecoder().decode(value);
    }
    await reader?.cancel();
    expect(answer.headers.get('access-control-allow-origin')).toBe(APP);
    expect(answer.headers.get('vary')?.toLowerCase()).toBe('origin');
  });

  it('asks for the status with a key in any of the headers of calls', async () => {
    const before = await preflight('/status', APP, 'headgate-key');
    expect(before.status).toBe(204);
    expect(await said(before)).toMatchObject({
      'access-control-allow-origin': APP,
      'access-control-allow-headers': 'headgate-key',
    });
    for (const [key, status] of [
      ['hg_mine', 200],
      ['hg_nobody', 401],
    ] as const) {
      const answer = await call('/status', { headers: { origin: APP, 'headgate-key': key } });
      expect(answer.status).toBe(status);
      expect(await said(answer)).toMatchObject({ 'access-control-allow-origin': APP });
    }
  });

  it('is nobody with the cookie of somebody who is signed in here', async () => {
    const headers = { origin: APP, cookie: await cookie(), 'headgate-admin': '1' };
    for (const [method, path, why] of [
      ['GET', '/admin/api/groups', 'cannot use the cookie'],
      ['POST', '/admin/api/groups/all/resume', 'a page of the same host'],
    ] as const) {
      const answer = await call(path, { method, headers });
      expect(answer.status).toBe(403);
      expect(await answer.text()).toContain(why);
    }
    const own = await call('/admin/api/groups', { headers: { cookie: headers.cookie } });
    expect(own.status).toBe(200);
    await own.body?.cancel();
  });

  it('signs nobody in', async () => {
    const answer = await call('/admin/api/session', {
      method: 'POST',
      headers: { origin: APP, 'content-type': 'application/json' },
      body: JSON.stringify({ token: 'test-admin-token' }),
    });
    expect(answer.status).toBe(403);
    expect(answer.headers.has('set-cookie')).toBe(false);
    await answer.body?.cancel();
  });
});

describe('a page of any other origin', () => {
  const OTHERS = ['https://evil.test', 'https://app.test.evil.test', 'http://app.test', 'null'];

  it.each(OTHERS)('%s hears nothing, with a token or before it asks', async (origin) => {
    for (const path of ['/admin/api/groups', '/status']) {
      expect(await said(await preflight(path, origin, 'authorization'))).toEqual({});
      const headers = { origin, authorization: path === '/status' ? 'Bearer hg_mine' : TOKEN };
      expect(await said(await call(path, { headers }))).toEqual({});
    }
  });

  it('is nobody with a cookie', async () => {
    const headers = { origin: 'https://evil.test', cookie: await cookie() };
    const answer = await call('/admin/api/groups', { headers });
    expect(answer.status).toBe(403);
    await answer.body?.cancel();
  });
});

it('no page of another origin hears anything until origins are configured', async () => {
  await configureOrigins([]);
  for (const path of ['/admin/api/groups', '/status']) {
    expect(await said(await preflight(path, APP, 'authorization'))).toEqual({});
    expect(
      await said(await call(path, { headers: { origin: APP, authorization: TOKEN } })),
    ).toEqual({});
  }
});

describe('origins of apps and extensions', () => {
  const ORIGINS = [
    'app://obsidian.md',
    'capacitor://localhost',
    'tauri://localhost',
    'http://tauri.localhost',
    'chrome-extension://abcdefghijklmnopabcdefghijklmnop',
    'moz-extension://2d05f1c6-8b6c-4e0f-9a3a-0f5c0b7f1b2e',
    'vscode-webview://0a1b2c',
    'null',
  ];
  const PATHS = ['/admin/api/groups', '/status', '/leases', '/openai/v1/chat/completions'];

  const allowedAt = async (path: string, origin: string): Promise<string | undefined> => {
    const headers = await said(await preflight(path, origin, 'authorization', 'POST'));
    return headers['access-control-allow-origin'];
  };

  it.each(ORIGINS)('%s is allowed on every route if it is listed', async (origin) => {
    await configureOrigins([origin]);
    for (const path of PATHS) expect(await allowedAt(path, origin)).toBe(origin);
  });

  it.each(ORIGINS)('%s is not allowed because others are listed', async (origin) => {
    await configureOrigins(ORIGINS.filter((other) => other !== origin));
    const others = [origin, `${origin}.evil`, `${origin}:1`, `${origin}/`, origin.toUpperCase()];
    for (const path of PATHS) {
      for (const other of others) expect(await allowedAt(path, other)).not.toBe(other);
    }
  });
});
