// The dashboard's files on plain workerd, whose folders know no types, and list what is in them.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startServe, type Serve } from '../../../scripts/serve/start-serve.ts';

let folder: string;
let serve: Serve;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-page-'));
  serve = await startServe({ port: 0, dataDir: folder, env: {} });
});

afterAll(async () => {
  await serve.stop();
  await rm(folder, { recursive: true, force: true });
});

it('the page and its scripts are served with their types, without a token', async () => {
  const page = await fetch(`${serve.url}/admin/groups/x`);
  expect(page.status).toBe(200);
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(page.headers.get('cache-control')).toBe('no-cache');
  const html = await page.text();
  const scripts = [...html.matchAll(/src="(\/admin\/assets\/[^"]+\.js)"/g)];
  expect(scripts.length).toBeGreaterThan(0);
  for (const [, path = ''] of scripts) {
    const script = await fetch(`${serve.url}${path}`);
    expect(script.status).toBe(200);
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(script.headers.get('cache-control')).toContain('immutable');
    expect((await script.text()).length).toBeGreaterThan(0);
  }
});

it('a HEAD has no body, and a folder is not listed', async () => {
  const head = await fetch(`${serve.url}/admin`, { method: 'HEAD' });
  expect(head.status).toBe(200);
  expect(await head.text()).toBe('');
  for (const path of ['/admin/assets', '/admin/assets/', '/admin/assets/%2e']) {
    expect((await fetch(`${serve.url}${path}`)).status).toBe(404);
  }
});
