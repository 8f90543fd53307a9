// The dashboard's page and files, as Workers Assets serves them: who gets what, and with which headers.
import { beforeEach, describe, expect, it } from 'vitest';
import { createApp } from '../../../src/http/app.ts';
import type { Env } from '../../../src/env.ts';
import { call, env } from '../support/worker.ts';

/** Only the built files, because answers of upstreams have the same origin. */
const BUILT = 'headgate.test/admin/assets/';

const CSP = {
  'default-src': "'none'",
  'script-src': BUILT,
  'style-src': BUILT,
  'img-src': `${BUILT} data:`,
  'connect-src': "'self'",
  'font-src': BUILT,
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
};

/** Paths of the files that the page names. */
async function filesOfPage(): Promise<string[]> {
  const html = await (await call('/admin')).text();
  return [...html.matchAll(/(?:src|href)="(\/admin\/assets\/[^"]+\.(?:js|css))"/g)].map(
    ([, path = '']) => path,
  );
}

/** Asks the Worker where its files are `ASSETS`. */
async function answerWith(
  ASSETS: unknown,
  path: string,
  host = 'headgate.test',
): Promise<Response> {
  const app = createApp();
  const context = { waitUntil: () => {}, passThroughOnException: () => {}, props: {} };
  const request = new Request(`https://${host}${path}`);
  return (await app.fetch?.(
    request as Parameters<NonNullable<typeof app.fetch>>[0],
    { ...env, ...(ASSETS === undefined ? { ASSETS: undefined } : { ASSETS }) } as Env,
    context as unknown as ExecutionContext,
  )) as Response;
}

it('the icon that browsers ask for at the top is that of the page', async () => {
  const answer = await call('/favicon.ico', { redirect: 'manual' });
  expect(answer.status).toBe(302);
  const icon = await call(new URL(answer.headers.get('location') ?? '', 'https://x').pathname);
  expect(icon.headers.get('content-type')).toBe('image/svg+xml');
  await icon.text();
  const none = { fetch: () => Promise.resolve(new Response(null, { status: 404 })) };
  expect((await answerWith(none, '/favicon.ico')).status).toBe(204);
});

describe('the page', () => {
  it.each(['/admin', '/admin/', '/admin/groups/openai-shared', '/admin/groups/a.b', '/admin?x=1'])(
    'answers %s, needs no token, and is asked for anew every time',
    async (path) => {
      const response = await call(path);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(response.headers.get('cache-control')).toBe('no-cache');
      expect(await response.text()).toMatch(/^<!doctype html>/i);
    },
  );

  it('has no inline script or style, and headers that let none run', async () => {
    const response = await call('/admin');
    const csp = response.headers.get('content-security-policy') ?? '';
    const directives = csp.split(';').map((directive) => directive.trim().split(/ (.*)/s));
    expect(Object.fromEntries(directives)).toEqual(CSP);
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('referrer-policy')).toBe('no-referrer');
    expect(response.headers.has('strict-transport-security')).toBe(false);
    const html = await response.text();
    expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/i);
  });

  it.each([
    ['gate.example.com', 'gate.example.com/admin/assets/'],
    ['gate.example.com:8443', 'gate.example.com:8443/admin/assets/'],
    ['[::1]:8787', "'self'"],
    ['x;script-src', "'self'"],
    ["'unsafe-inline'", "'self'"],
    ['*.example.com', "'self'"],
    ['a,b', "'self'"],
  ])('names a host in its policy only if it is a plain name: %s', async (host, source) => {
    const response = await answerWith(env.ASSETS, '/admin', host);
    const csp = response.headers.get('content-security-policy') ?? '';
    const scripts = csp.split('; ').filter((directive) => directive.startsWith('script-src'));
    expect(scripts).toEqual([`script-src ${source}`]);
    await response.text();
  });

  it('is not sent again to who has it', async () => {
    const first = await call('/admin');
    const etag = first.headers.get('etag') ?? '';
    await first.text();
    expect(etag).not.toBe('');
    const again = await call('/admin', { headers: { 'if-none-match': etag } });
    expect(again.status).toBe(304);
    expect(again.headers.get('content-security-policy')).not.toBeNull();
  });

  it('says how to build it where it was never built', async () => {
    const missing = { fetch: async () => new Response('Not Found', { status: 404 }) };
    for (const assets of [undefined, missing]) {
      for (const path of ['/admin/api/docs', '/admin/api/openapi.json', '/leases/openapi.json']) {
        expect((await answerWith(assets, path)).status).toBe(503);
      }
      const response = await answerWith(assets, '/admin/groups');
      expect(response.status).toBe(503);
      expect(await response.text()).toContain('npm run build:dashboard');
      expect(response.headers.get('content-security-policy')).not.toBeNull();
    }
  });
});

describe('its files', () => {
  let files: string[];
  beforeEach(async () => {
    files = await filesOfPage();
  });

  it('are there, with their types, and stay good for a year', async () => {
    expect(files.length).toBeGreaterThan(0);
    for (const path of files) {
      const response = await call(path);
      await response.arrayBuffer();
      expect(response.status).toBe(200);
      const types = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' };
      const end = path.split('.').at(-1) as keyof typeof types;
      expect(response.headers.get('content-type')).toBe(types[end]);
      expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    }
  });

  it.each([
    '/admin/assets/nothing.js',
    '/admin/assets/',
    '/admin/assets',
    '/admin/assets/deeper/index.js',
    '/admin/assets/..%2findex.html',
    '/admin/assets/index.js%00.html',
  ])('that are not there are a 404, not the page: %s', async (path) => {
    const response = await call(path);
    expect(response.status).toBe(404);
    expect(await response.text()).not.toContain('<html');
    expect(response.headers.get('cache-control') ?? '').not.toContain('immutable');
  });
});

describe('nothing else', () => {
  it('reaches the files: calls and the data of the admin API never ask for one', async () => {
    const asked: string[] = [];
    const watched = {
      fetch: async (url: string) => {
        asked.push(url);
        return new Response('a file');
      },
    };
    const paths = [
      '/',
      '/healthz',
      '/index.html',
      '/assets/x.js',
      '/nobody/v1/models',
      '/administer',
    ];
    for (const path of [...paths, '/admin/api', '/admin/api/nothing', '/admin/api/status']) {
      await (await answerWith(watched, path)).text();
    }
    expect(asked).toEqual([]);
    await (await answerWith(watched, '/admin')).text();
    expect(asked).toEqual(['https://dashboard/index.html']);
  });

  it('of the admin API is answered with the page', async () => {
    const response = await call('/admin/api/nothing');
    expect(response.status).toBe(401);
    expect(response.headers.get('content-type')).toContain('application/problem+json');
  });
});
