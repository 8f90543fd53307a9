import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An upstream that stores what it makes, and knows nothing of what others made. */
export interface StoringUpstream {
  readonly url: string;
  /** Methods and paths of the calls that it got. */
  readonly seen: readonly string[];
  close(): void;
}

interface StoringUpstreamRequest {
  readonly method: string;
  readonly path: string;
  readonly json: Record<string, unknown>;
}

/** Paths whose POST makes an object, and how its id begins. */
const MADE: Record<string, string> = {
  '/responses': 'resp',
  '/videos': 'video',
  '/batches': 'batch',
  '/messages/batches': 'msgbatch',
  '/files': 'file',
  '/threads': 'thread',
  '/threads/runs': 'run',
};

/** Starts an upstream. `name` stands in the ids that it makes. */
export async function startStoringUpstream(name: string): Promise<StoringUpstream> {
  const seen: string[] = [];
  const stored = new Map<string, Record<string, unknown>>();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://upstream');
    const path = pathname.replace(/^\/v1/, '');
    const json = jsonOf(Buffer.concat(chunks).toString());
    const asked = { method: request.method ?? '', path, json };
    seen.push(`${asked.method} ${path}`);
    const object = made(asked, name, stored) ?? found(asked, stored);
    if (json['stream'] === true || searchParams.get('stream') === 'true') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const from = Number(searchParams.get('starting_after') ?? -1);
      for (const [at, type] of ['response.created', 'response.in_progress'].entries()) {
        const event = { type, sequence_number: at, response: object };
        if (at > from) response.write(`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`);
      }
      response.end();
      return;
    }
    response.writeHead(object === null ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(object ?? { error: { message: `not made by ${name}` } }));
  };
  const server = createServer((request, response) => void answer(request, response));
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

function made(
  { method, path, json }: StoringUpstreamRequest,
  name: string,
  stored: Map<string, Record<string, unknown>>,
): Record<string, unknown> | null {
  const kind = MADE[path];
  if (method !== 'POST' || kind === undefined) return null;
  const id = `${kind}_${name}${stored.size}`;
  const { background = false, store = true, input = 'x' } = json;
  const status = background === true ? 'in_progress' : 'completed';
  const ofThread = kind === 'run' ? { object: 'thread.run', thread_id: `thread_${id}` } : {};
  const object = { id, object: kind, status, background, store, input, output: [], ...ofThread };
  stored.set(id, object);
  if (kind === 'run') stored.set(`thread_${id}`, object);
  return object;
}

function found(
  { method, path }: StoringUpstreamRequest,
  stored: Map<string, Record<string, unknown>>,
): Record<string, unknown> | null {
  const segments = path.split('/');
  const id = segments.find((each) => stored.has(each));
  const object = id === undefined ? undefined : stored.get(id);
  if (id === undefined || object === undefined) return null;
  if (path.endsWith('/input_items')) {
    return { object: 'list', data: [{ id: 'msg_1', type: 'message' }], has_more: false };
  }
  if (path.endsWith('/cancel')) stored.set(id, { ...object, status: 'cancelled' });
  if (method === 'DELETE') {
    stored.delete(id);
    return { id, deleted: true };
  }
  return stored.get(id) ?? null;
}

function jsonOf(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}
