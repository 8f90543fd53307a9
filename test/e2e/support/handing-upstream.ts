import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** The answer to a call, given by the call as JSON in the query parameter `answer`. */
export interface HandingUpstreamRequest {
  readonly status?: number;
  /** `{base}` stands for the base URL of the call: the first segment of its path. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A request as it arrived. */
interface Arrived {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** An upstream that sends addresses in headers and accepts Google's resumable uploads. */
export interface HandingUpstream {
  readonly url: string;
  readonly arrived: Arrived[];
  stop(): Promise<void>;
}

const UPLOAD = /^\/upload\/v\w+\/files$/;

/** Answers an upload: the first request gets an address for the file, the second one is the file. */
function takeUpload(url: URL, res: ServerResponse, origin: string, body: string): void {
  if (!url.searchParams.has('upload_id')) {
    const at = `${origin}${url.pathname}?upload_id=up-1&upload_protocol=resumable`;
    const state = { 'x-goog-upload-status': 'active', 'x-goog-upload-control-url': at };
    res.writeHead(200, { ...state, 'x-goog-upload-url': at }).end();
    return;
  }
  const file = { name: 'files/one', sizeBytes: String(body.length), state: 'ACTIVE' };
  res.writeHead(200, { 'x-goog-upload-status': 'final', 'content-type': 'application/json' });
  res.end(JSON.stringify({ file }));
}

function answer(req: IncomingMessage, res: ServerResponse, origin: string, body: string): void {
  const url = new URL(req.url ?? '/', origin);
  if (UPLOAD.test(url.pathname)) return takeUpload(url, res, origin, body);
  const base = `${origin}/${url.pathname.split('/')[1] ?? ''}`;
  const { status = 200, headers } = askedOf(url);
  for (const [name, value] of Object.entries(headers)) {
    res.setHeader(name, value.replaceAll('{base}', base));
  }
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(status === 304 ? undefined : '{"object":"chat.completion","choices":[]}');
}

function askedOf(url: URL): HandingUpstreamRequest {
  return JSON.parse(url.searchParams.get('answer') ?? '{"headers":{}}') as HandingUpstreamRequest;
}

/** Starts one on 127.0.0.1. It answers upgrades like other requests, without opening a WebSocket. */
export async function startHandingUpstream(): Promise<HandingUpstream> {
  const arrived: Arrived[] = [];
  const take = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const body = await text(req);
    const { method = '', url = '', headers } = req;
    arrived.push({ method, url, headers, body });
    answer(req, res, `http://${headers.host ?? ''}`, body);
  };
  const server = createServer((req, res) => {
    take(req, res).catch(() => res.destroy());
  });
  server.on('upgrade', (req, socket) => {
    const { status = 200, headers } = askedOf(new URL(req.url ?? '/', 'http://upstream'));
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} Moved\r\n${lines.join('')}content-length: 0\r\n\r\n`);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    arrived,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
