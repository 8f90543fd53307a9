import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** TLS and HTTP/2 before a Headgate of our own, which speaks neither. */
export interface TlsFront {
  readonly url: string;
  /** The certificate that clients have to trust. */
  readonly certificate: string;
  close(): Promise<void>;
}

/** Headers of a connection, which HTTP/2 does not have. */
const OF_CONNECTION = new Set(['connection', 'keep-alive', 'transfer-encoding']);

const isPlain = (name: string): boolean => !name.startsWith(':') && !OF_CONNECTION.has(name);

/** Starts a front to that URL; its key is made in the folder. */
export async function startTlsFront(target: string, folder: string): Promise<TlsFront> {
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const files = ['-keyout', key, '-out', certificate];
  const kind = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2'];
  await promisify(execFile)('openssl', ['req', ...kind, ...subject, ...files]);
  const pair = { key: await readFile(key), cert: await readFile(certificate) };
  const server = createSecureServer({ ...pair, allowHTTP1: true }, (incoming, response) =>
    pass(target, incoming, response),
  );
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://localhost:${port}`,
    certificate,
    close: () => new Promise((resolve) => void server.close(() => resolve())),
  };
}

function pass(target: string, incoming: Http2ServerRequest, response: Http2ServerResponse): void {
  const headers = Object.entries(incoming.headers).filter(([name]) => isPlain(name));
  const outgoing = request(target + incoming.url, {
    method: incoming.method,
    headers: Object.fromEntries(headers),
    agent: false,
  });
  outgoing.on('response', (answer) => {
    const plain = Object.entries(answer.headers).filter(([name]) => isPlain(name));
    response.writeHead(answer.statusCode ?? 502, Object.fromEntries(plain));
    answer.pipe(response);
    answer.on('error', () => response.destroy());
  });
  // Who leaves takes the call along.
  outgoing.on('error', () => response.end());
  response.on('close', () => outgoing.destroy());
  incoming.pipe(outgoing);
}
