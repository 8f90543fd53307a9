// Freezes which route serves a request, however odd its path or method is, and what reaches the upstream of a call. The
// requests are bytes on a connection to workerd itself, because clients and forwarders normalize paths.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { goldenFile } from '../../support/golden.ts';
import {
  NO_HOLDS,
  STAGE_TOKEN,
  startStage,
  type LifecycleStage,
} from '../support/lifecycle-stage.ts';

const BODY = '{"model":"m","messages":[]}';
const LONG = 'a/'.repeat(4_000);

/** Paths of calls, and paths that are almost those of Headgate's own routes. */
const CALLED = [
  '/up/v1/models',
  '/blind/a/b',
  '//blind/a//b/',
  '/blind//a/./b/../c',
  '/blind/%61%2Fb%2fc%2E%2e/%00/%25',
  '/blind/a;b=c/d,e/@:+$&!~*()',
  '/blind/%',
  '/blind/%zz/%E4/%F0%9F%98%80',
  '/blind/a b',
  '/blind/a\\b',
  '/blind/a"<>^`{|}b',
  '/blind/a?b=c%2Fd&e=//f?g#h',
  '/blind/a#b',
  '/blind?a',
  '/blind/?',
  '/blind/caf\u00E9',
  `/blind/${LONG}`,
  '/BLIND/a',
  '/%62lind/a',
  '/blind%2Fa',
  '/*',
  '/:upstream',
  '/blind/admin/api/groups',
  '/Admin',
  '/ADMIN/api/groups',
  '/%61dmin/api/groups',
  '/admin%2Fapi',
  '/admin%20/api',
  '/admin;a/api',
  '/admin.',
  '/admin#a',
  '/administrator/api',
  '/adminapi',
  '/./admin',
  '/../admin',
  '/x/../admin/api/groups',
  '/admin\\api',
  '/Status',
  '/statuses',
  '/health%7a',
  '/!Stopping',
  '/%21stopping',
  '/constructor',
  '/__proto__/a',
];

/** Paths of Headgate's own routes. */
const OWN = [
  '/',
  '//',
  '/?a=b',
  '//?a',
  '/healthz',
  '//healthz///',
  '/healthz?a',
  '/healthz/x',
  '/favicon.ico',
  '/favicon.ico/x',
  '/metrics',
  '/metrics/x',
  '/status',
  '/status/',
  '/status/x',
  '/leases',
  '/leases/openapi.json',
  '//leases//openapi.json/',
  '/leases/%6Fpenapi.json',
  '/leases/a/b',
  '/tickets',
  '/tickets/a',
  '/tickets/a/b',
  '/webhooks',
  '/webhooks/up',
  '/webhooks/up/a',
  '/admin',
  '/admin/',
  '/admin?a',
  '/admin//groups/a%2Fb',
  '/admin/../blind/a',
  '/admin/%61pi/groups',
  '/admin/assets/none.js',
  '/admin/api',
  '/admin/api/groups',
  '/admin//api///groups/',
  '/admin/api/gr%6Fups',
  '/admin/api/groups/a%2Fb',
  '/admin/api/groups/%',
  '/admin/api/none',
  '/!malformed',
  '/!malformed/',
  '/!malformed/header',
  '/!malformed/late/up/v1/chat/completions',
  '//!malformed//chunk//up/x',
  '/!departed',
  '/!departed/x',
  '/!stopping',
  '/!stopping/x',
];

/** Paths of the admin API. */
const OF_ADMIN = /^\/admin\/+(?:a|%61)pi/;

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'];

const KEY = 'Authorization: Bearer sk-own';
/** The admin API delays responses to unknown tokens. */
const ADMIN = `Authorization: Bearer ${STAGE_TOKEN}`;
const PAGE = 'Origin: https://app.example';
const PREFLIGHT = `${PAGE}\nAccess-Control-Request-Method: POST\nAccess-Control-Request-Headers: x-any`;
const UPGRADE =
  'Upgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';

interface OddRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: string;
}

const REQUESTS: readonly OddRequest[] = [
  ...CALLED.flatMap((path) =>
    ['GET', 'HEAD', 'POST'].map((method) => ({ method, path, headers: KEY })),
  ),
  ...METHODS.flatMap((method) =>
    ['/blind/a//b', '/up/v1/models', '/none/a', '/v1/models', '/v1/none'].map((path) => ({
      method,
      path,
      headers: KEY,
    })),
  ),
  ...['GET', 'HEAD', 'POST', 'OPTIONS'].flatMap((method) =>
    OWN.map((path) => ({ method, path, headers: OF_ADMIN.test(path) ? ADMIN : KEY })),
  ),
  ...['/', '//admin', '/status?a', '/healthz/x', '/!stopping', '/!Stopping', '/%61dmin'].map(
    (path) => ({ method: 'TRACE', path, headers: KEY }),
  ),
  ...['/blind/a', '/none', '/status', '/leases', '/admin/api/groups', '/healthz', '/'].flatMap(
    (path) => [
      { method: 'OPTIONS', path, headers: PREFLIGHT },
      { method: 'OPTIONS', path, headers: PREFLIGHT.replace('app.', 'evil.') },
      { method: 'GET', path, headers: `${KEY}\n${PAGE}` },
      { method: 'POST', path, headers: `${KEY}\n${PAGE.replace('app.', 'evil.')}` },
    ],
  ),
  ...[
    '/sockets/a//b%2F',
    '/blind/a',
    '/up/v1/models',
    '/none',
    '/admin',
    '/healthz',
    '/status',
  ].map((path) => ({ method: 'GET', path, headers: `${KEY}\n${UPGRADE}` })),
  ...['gzip', 'no-length', 'no-content', 'not-modified', 'redirect', 'cookies', 'error'].flatMap(
    (answer) =>
      ['GET', 'HEAD'].map((method) => ({
        method,
        path: `/blind/${answer}`,
        headers: `${KEY}\nX-Odd: A\nx-odd: b\nAccept-Encoding: gzip, br\nIf-None-Match: "x"`,
      })),
  ),
];

/** Header that tells the requests of one batch apart at the upstream. */
const NUMBER = 'x-number';

/** Requests sent at the same time. */
const BATCH = 16;

/** Requests that arrived at the upstream, by the number of the request that caused them. */
const arrivals = new Map<string, IncomingMessage[]>();

let stage: LifecycleStage;

function noteArrival(req: IncomingMessage): void {
  const number = String(req.headers[NUMBER]);
  arrivals.set(number, [...(arrivals.get(number) ?? []), req]);
}

const upstream = createServer((req, res) => {
  noteArrival(req);
  req.resume();
  req.on('end', () => {
    res.setHeader('x-from', 'upstream');
    res.setHeader('content-type', 'text/plain');
    const { pathname } = new URL(req.url ?? '', 'http://upstream');
    switch (pathname.slice(1)) {
      case 'gzip':
        return res.writeHead(200, { 'content-encoding': 'gzip', 'content-length': 3 }).end('abc');
      case 'no-length':
        return res.writeHead(200, { etag: 'W/"1"' }).end('abc');
      case 'no-content':
        return res.writeHead(204, 'Nothing Here').end();
      case 'not-modified':
        return res.writeHead(304, { etag: '"x"' }).end();
      case 'redirect':
        return res.writeHead(302, { location: '/elsewhere?a' }).end();
      case 'cookies':
        return res.writeHead(200, { 'set-cookie': ['a=1', 'b=2; Path=/'] }).end('abc');
      case 'error':
        return res.writeHead(418, 'Odd', { 'content-length': 3 }).end('abc');
      default:
        return res.writeHead(200, { 'content-length': 5 }).end('hello');
    }
  });
});

upstream.on('upgrade', (req, socket) => {
  noteArrival(req);
  const accept = createHash('sha1')
    .update(`${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64');
  socket.on('error', () => {});
  socket.end(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
});

/** Replaces the middle of a long path by its length. */
function shortened(text: string): string {
  return text.replaceAll(LONG, `<${LONG.length} characters>`);
}

function shownHeaders({ rawHeaders }: IncomingMessage): string {
  const headers = rawHeaders.flatMap((name, at) => {
    if (at % 2 === 1 || name.toLowerCase() === NUMBER) return [];
    const isRandom = /^(?:host|sec-websocket-key|x-request-id|traceparent)$/i.test(name);
    return [`${name}=${isRandom ? '*' : rawHeaders[at + 1]}`];
  });
  return headers.join(' | ');
}

beforeAll(async () => {
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const base_url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const upstreams = [
    { id: 'up', base_url, dialect: 'openai' },
    { id: 'blind', base_url, dialect: 'opaque' },
    { id: 'sockets', base_url, websocket: 'session' },
  ];
  const config = {
    upstreams,
    groups: [
      {
        name: 'all',
        match: { upstreams: upstreams.map(({ id }) => id) },
        limits: { max_concurrency: 50 },
        holds: NO_HOLDS,
      },
    ],
    leases: 'open',
    cors_origins: ['https://app.example'],
  };
  stage = await startStage({ config: () => config, forwarder: false });
});

afterAll(async () => {
  await stage.close();
  upstream.closeAllConnections();
  upstream.close();
});

/** Sends a request as bytes, and reads until the connection ends. */
function exchange({ method, path, headers }: OddRequest, number: number): Promise<string> {
  const hasBody = ['POST', 'PUT', 'PATCH'].includes(method);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: localhost',
    `${NUMBER}: ${number}`,
    ...(headers.includes('Upgrade') ? [] : ['Connection: close']),
    ...(hasBody ? ['Content-Type: application/json', `Content-Length: ${BODY.length}`] : []),
    ...headers.split('\n'),
  ];
  const port = Number(new URL(stage.url()).port);
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    let text = '';
    socket.on('data', (data: Buffer) => {
      text += data.toString('latin1');
      const [switched] = /^HTTP\/1\.1 101 .*?\r\n\r\n/s.exec(text) ?? [];
      if (switched === undefined) return;
      // Frames may follow at once.
      text = switched;
      socket.destroy();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
    socket.write(`${lines.join('\r\n')}\r\n\r\n${hasBody ? BODY : ''}`, 'utf8');
  });
}

/** Headers whose values are shown. Of all others only the name is. */
const SHOWN =
  /^(?:allow|content-type|content-encoding|cache-control|location|headgate-reason|access-control-.*|connection|transfer-encoding|etag|set-cookie|upgrade|vary|x-from)$/;

function shownAnswer(text: string): string {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return 'no answer';
  const [line = '', ...headers] = text.slice(0, end).split('\r\n');
  const isOfUpstream = headers.some((header) => /^x-from:/i.test(header));
  const shown = headers
    .flatMap((header) => {
      const [, name = '', value = ''] = /^([^:]*): ?(.*)$/.exec(header) ?? [];
      const isShown = SHOWN.test(name.toLowerCase()) || (isOfUpstream && /^content-/i.test(name));
      if (/^(?:date|keep-alive)$/i.test(name)) return [];
      return [isShown ? `${name}=${value.replace(/-[\w-]+\.svg/, '-*.svg')}` : name];
    })
    .toSorted();
  const body = text.slice(end + 4);
  return `${line.replace('HTTP/1.1 ', '')} | ${shown.join(' | ')} | ${shownBody(body)}`;
}

/** The body of an upstream, or the fields of a JSON body of Headgate's own. */
function shownBody(body: string): string {
  if (body === '') return 'no body';
  const [json] = /\{.*\}/s.exec(body) ?? [];
  if (json === undefined) return body.length < 20 ? JSON.stringify(body) : 'text';
  try {
    const fields = JSON.parse(json) as Record<string, unknown>;
    const inner = Object.keys((fields['error'] as object | undefined) ?? {});
    return `{${Object.keys(fields).join(',')}}${inner.length === 0 ? '' : `{${inner.join(',')}}`}`;
  } catch {
    return 'text';
  }
}

/** Numbers values in the order of their first occurrence, so that the golden shows each only once. */
class Numbered {
  readonly #values: string[] = [];

  numberOf(value: string): number {
    const at = this.#values.indexOf(value);
    return at < 0 ? this.#values.push(value) : at + 1;
  }

  lines(letter: string): string[] {
    return this.#values.map((value, at) => `${letter}${at + 1}: ${value}`);
  }
}

it('freezes which route serves a request, and what reaches the upstream', async () => {
  const answers: string[] = [];
  while (answers.length < REQUESTS.length) {
    const from = answers.length;
    const batch = REQUESTS.slice(from, from + BATCH);
    answers.push(...(await Promise.all(batch.map((each, at) => exchange(each, from + at)))));
  }
  const shownAnswers = new Numbered();
  const shownArrivals = new Numbered();
  const rows = REQUESTS.map(({ method, path, headers }, at) => {
    const answer = `a${shownAnswers.numberOf(shownAnswer(answers[at] ?? ''))}`;
    const reached = (arrivals.get(String(at)) ?? []).map((req) => {
      const number = shownArrivals.numberOf(shownHeaders(req));
      return `; upstream: ${req.method} ${shortened(req.url ?? '')} h${number}`;
    });
    const more =
      headers === KEY || headers === ADMIN ? '' : ` [${headers.replaceAll('\n', ' | ')}]`;
    return `${method} ${shortened(path)}${more}: ${answer}${reached.join('')}`;
  });
  const shown = [...rows, ...shownAnswers.lines('a'), ...shownArrivals.lines('h')];
  await expect(`${shown.join('\n')}\n`).toMatchFileSnapshot(goldenFile('requests'));
});
