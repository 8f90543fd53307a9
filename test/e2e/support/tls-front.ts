import { request } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { makeCertificate } from './certificate.ts';

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
  const { key, cert, certPath } = await makeCertificate(folder);
  const server = createSecureServer({ key, cert, allowHTTP1: true }, (incoming, response) =>
    pass(target, incoming, response),
  );
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://localhost:${port}`,
    certificate: certPath,
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
