import type { IncomingHttpHeaders, Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A provider behind a cache that its callers share. */
export interface CachedProvider {
  /** The address of the cache. */
  readonly url: string;
  /** The address of the provider itself. */
  readonly directUrl: string;
  /** Headers of what came to the cache, the latest last. */
  readonly asked: readonly IncomingHttpHeaders[];
  close(): Promise<void>;
}

/**
 * Starts a provider whose answers name the key that it was asked with and may be kept by everybody, and a cache
 * in front of it, both for GET alone. The cache does as RFC 9111 lets it: it knows answers by their address, as no
 * `vary` says otherwise, keeps them because they are `public`, and serves what it has unless a request wants none.
 */
export async function startCachedProvider(): Promise<CachedProvider> {
  const provider = createServer((request, response) => {
    const { authorization, 'x-api-key': apiKey } = request.headers;
    const id = `model-of-${String(apiKey ?? authorization).replace('Bearer ', '')}`;
    response.writeHead(200, {
      'content-type': 'application/json',
      'cache-control': 'public, max-age=3600',
    });
    response.end(JSON.stringify({ object: 'list', data: [{ id, object: 'model' }] }));
  });
  const directUrl = await listen(provider);
  const kept = new Map<string, string>();
  const asked: IncomingHttpHeaders[] = [];
  const cache = createServer((request, response) => {
    const { url = '/', headers } = request;
    asked.push(headers);
    const known = refusesKept(headers) ? undefined : kept.get(url);
    const answer =
      known === undefined ? passOn(`${directUrl}${url}`, headers) : Promise.resolve(known);
    answer
      .then((body) => {
        kept.set(url, body);
        response.writeHead(200, { 'content-type': 'application/json' }).end(body);
      })
      .catch(() => response.destroy());
  });
  const url = await listen(cache);
  return {
    url,
    directUrl,
    asked,
    close: async () => {
      await Promise.all([cache, provider].map(end));
    },
  };
}

/** Tells whether a request wants nothing that was kept. */
function refusesKept(headers: IncomingHttpHeaders): boolean {
  return /no-cache|no-store|max-age=0/.test(headers['cache-control'] ?? headers.pragma ?? '');
}

async function passOn(url: string, headers: IncomingHttpHeaders): Promise<string> {
  const { authorization, 'x-api-key': apiKey } = headers;
  const credentials = {
    ...(authorization !== undefined && { authorization }),
    ...(apiKey !== undefined && { 'x-api-key': String(apiKey) }),
  };
  const answer = await fetch(url, { headers: credentials });
  return answer.text();
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function end(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
