// A page of another origin uploads audio and images as forms, through groups that match by model.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NO_HOLDS, startStage, type LifecycleStage } from '../e2e/support/lifecycle-stage.ts';
import { startBrowser, type RealBrowser } from './support/chromium.ts';

const GATEWAY_KEY = 'hg_of-a-page-that-uploads';

const PAGE = '<!doctype html><link rel="icon" href="data:,"><title>Uploads</title>';

interface UploadsSent {
  readonly type: string;
  readonly sha256: string;
}

let stage: LifecycleStage;
let browser: RealBrowser;
let site: Server;
let origin: string;
/** The form that the browser sent last, as it left the browser. */
let sent: UploadsSent | null = null;

/** Serves the page at `/`, and passes everything else to Headgate. */
function startSite(): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.url === '/') {
      response.setHeader('content-type', 'text/html').end(PAGE);
      return;
    }
    passOn(request, response).catch(() => response.destroy());
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

async function passOn(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Uint8Array>));
  const { url = '/', headers } = request;
  const type = headers['content-type'] ?? '';
  sent = { type, sha256: sha256(body) };
  const answer = await fetch(`${stage.url()}${url}`, {
    method: 'POST',
    headers: {
      'content-type': type,
      'headgate-key': GATEWAY_KEY,
      'x-strict-echo': '1',
      origin,
    },
    body,
  });
  const groups = answer.headers.get('headgate-groups') ?? '';
  response.writeHead(answer.status, { 'headgate-groups': groups });
  response.end(await answer.text());
}

const sha256 = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex');

beforeAll(async () => {
  site = await startSite();
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  const group = (name: string, model: string) => ({
    name,
    match: { models: [model] },
    limits: { max_concurrency: 2 },
    holds: NO_HOLDS,
  });
  [browser, stage] = await Promise.all([
    startBrowser(),
    startStage({
      env: { UPSTREAM_A: 'sk-of-the-operator' },
      config: ({ url }) => ({
        // The operator pays, so that the model has to be the one that the upstream reads.
        upstreams: [
          { id: 'media', base_url: url, dialect: 'openai', auth: { secret: 'UPSTREAM_A' } },
        ],
        keys: [{ id: 'page', hash: `sha256:${sha256(GATEWAY_KEY)}` }],
        groups: [group('audio', 'whisper-1'), group('images', 'gpt-image-1')],
        cors_origins: [origin],
      }),
    }),
  ]);
}, 120_000);

afterAll(async () => {
  site?.close();
  site?.closeAllConnections();
  await Promise.all([browser?.close(), stage?.close()]);
});

test.each([
  { path: '/media/v1/audio/transcriptions', model: 'whisper-1', group: 'audio', type: 'audio/wav' },
  { path: '/media/v1/images/edits', model: 'gpt-image-1', group: 'images', type: 'image/png' },
])(
  '$path: the upstream receives the bytes of the browser',
  async (upload) => {
    const page = await browser.open();
    await page.goto(origin);
    for (const bytes of [0, 5_000, 3_000_000]) {
      const answer = await page.evaluate(
        async ({ path, model, type, length }) => {
          const form = new FormData();
          const content = new Uint8Array(length).map((_, at) => (at * 31) % 251);
          form.append('file', new File([content], 'Übung "1"; name=x', { type }));
          form.append('model', model);
          form.append('timestamp_granularities[]', 'word');
          const response = await fetch(path, { method: 'POST', body: form });
          const echo = (await response.json()) as {
            sha256: string;
            headers: Record<string, string>;
          };
          return { status: response.status, groups: response.headers.get('headgate-groups'), echo };
        },
        { ...upload, length: bytes },
      );
      expect(answer).toMatchObject({
        status: 200,
        groups: upload.group,
        echo: { sha256: sent?.sha256, headers: { 'content-type': sent?.type } },
      });
      expect(sent?.type).toMatch(/^multipart\/form-data; boundary=----WebKitFormBoundary/);
    }
    expect(browser.complaints).toEqual([]);
  },
  60_000,
);
