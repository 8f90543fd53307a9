// The client package in a page of another origin, as users load it: from its tarball, without a bundler.
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CLIENT_KEY, startClientStage } from '../e2e/support/client-stage.ts';
import type { LifecycleStage } from '../e2e/support/lifecycle-stage.ts';
import { installPackedClient, type PackedClient } from '../e2e/support/packed-client.ts';
import { startBrowser, type RealBrowser } from './support/chromium.ts';

const LIMIT = 2;

const PAGE = `<!doctype html><link rel="icon" href="data:,"><script type="importmap">
  { "imports": { "headgate/client": "/node_modules/headgate/dist/index.js" } }
</script><script type="module">
  import { manyCalls } from '/many-calls.mjs';
  globalThis.manyCalls = manyCalls;
</script>`;

/** Globals of the page after its script. */
type Scripted = typeof globalThis & {
  readonly manyCalls?: (task: object) => Promise<number>;
};

let client: PackedClient;
let stage: LifecycleStage;
let site: Server;
let browser: RealBrowser;
let origin: string;

/** Serves the page and the installed package, and passes the page's calls to the provider. */
async function startSite(): Promise<Server> {
  const server = createServer((request, response) => {
    const path = normalize(request.url ?? '/');
    if (path === '/') return response.setHeader('content-type', 'text/html').end(PAGE);
    if (path.startsWith('/v1/')) return void passOn(path, request, response);
    readFile(join(client.folder, path)).then(
      (file) => response.setHeader('content-type', 'text/javascript').end(file),
      () => response.writeHead(404).end(),
    );
    return undefined;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

async function passOn(
  path: string,
  request: AsyncIterable<Uint8Array>,
  response: { end(text: string): void },
): Promise<void> {
  const body = Buffer.concat(await Array.fromAsync(request));
  const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-provider' };
  const answer = await fetch(`${stage.upstream.url}${path}`, { method: 'POST', headers, body });
  response.end(await answer.text());
}

beforeAll(async () => {
  [client, browser] = await Promise.all([installPackedClient(), startBrowser()]);
  site = await startSite();
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  stage = await startClientStage(LIMIT, () => ({ cors_origins: [origin] }));
  // Long enough for two calls to be there at once on a busy machine.
  stage.upstream.configure({ firstByteDelayMs: 100 });
}, 300_000);

afterAll(async () => {
  site?.close();
  site?.closeAllConnections();
  await Promise.all([browser?.close(), stage?.close(), client?.remove()]);
});

const open = async (): Promise<(count: number) => Promise<number>> => {
  const page = await browser.open();
  await page.goto(origin);
  await page.waitForFunction(() => 'manyCalls' in globalThis);
  const task = { url: stage.url(), key: CLIENT_KEY, provider: origin };
  return (count) =>
    page.evaluate((mine) => (globalThis as Scripted).manyCalls?.(mine) ?? -1, { ...task, count });
};

test('work of several pages keeps to the limit together', async () => {
  const pages = await Promise.all([open(), open(), open()]);
  expect(await Promise.all(pages.map((calls) => calls(20)))).toEqual([20, 20, 20]);
  expect(stage.upstream.stats()).toMatchObject({
    total: 60,
    completed: 60,
    peak: LIMIT,
    rejected429: 0,
  });
  expect(browser.complaints).toEqual([]);
});
