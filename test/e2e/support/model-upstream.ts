import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An upstream that lists models. */
export interface ModelUpstream {
  readonly url: string;
  /** Paths and queries that were asked for. */
  readonly seen: readonly string[];
  close(): void;
}

/** Answers of an upstream by the query of its list. Null: it never answers. */
export type ListModels = (query: URLSearchParams, key: string) => object | number | null;

/** Starts an upstream whose every GET below `/models` is its list. A number is an error with that status. */
export async function startModelUpstream(list: ListModels): Promise<ModelUpstream> {
  const seen: string[] = [];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '', 'http://upstream');
    seen.push(`${url.pathname}${url.search}`);
    const { authorization = '', 'x-api-key': apiKey = '' } = request.headers;
    const key = `${authorization.replace(/^Bearer /, '')}${String(apiKey)}`;
    const isList = /\/models\/?$/.test(url.pathname);
    const answer = isList ? list(url.searchParams, key) : 404;
    if (answer === null) return;
    const status = typeof answer === 'number' ? answer : 200;
    const error = { message: `status ${status}`, code: 'model_not_found' };
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(typeof answer === 'number' ? { error } : answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Names of models that are numbered from 0. */
export function numbered(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `${prefix}-${String(at).padStart(2, '0')}`);
}

/** Lists models as Anthropic does: 20 at a time unless asked for more. */
export function anthropicPages(ids: readonly string[]): ListModels {
  return (query) => {
    const from = ids.indexOf(query.get('after_id') ?? '') + 1;
    const page = ids.slice(from, from + Math.min(Number(query.get('limit') ?? 20), 25));
    const data = page.map((id) => {
      return { type: 'model', id, display_name: `The ${id}`, created_at: '2026-02-03T00:00:00Z' };
    });
    const hasMore = from + page.length < ids.length;
    return { data, has_more: hasMore, first_id: page[0] ?? null, last_id: page.at(-1) ?? null };
  };
}

/** Lists models in pages as OpenAI lists other things: they continue by `after`. */
export function openaiPages(ids: readonly string[]): ListModels {
  return (query) => {
    const from = ids.indexOf(query.get('after') ?? '') + 1;
    const page = ids.slice(from, from + 12);
    const data = page.map((id) => ({
      id,
      object: 'model',
      created: 1_700_000_000,
      owned_by: 'me',
    }));
    return { object: 'list', data, has_more: from + page.length < ids.length };
  };
}

/** Lists models as Gemini does. */
export function geminiPages(ids: readonly string[]): ListModels {
  return (query) => {
    const from = Number(query.get('pageToken') ?? 0);
    const page = ids.slice(from, from + 10);
    const models = page.map((id) => ({
      name: `models/${id}`,
      displayName: `The ${id}`,
      inputTokenLimit: 1_000,
      supportedGenerationMethods: ['generateContent'],
    }));
    const end = from + page.length;
    return end < ids.length ? { models, nextPageToken: String(end) } : { models };
  };
}
