import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { createServer } from 'node:tls';
import { makeCertificate } from './certificate.ts';

/** TLS before a Headgate of our own, byte by byte: what is inside is for that to understand. */
export interface TlsPipe {
  readonly url: string;
  /** The certificate that clients have to trust. */
  readonly certificate: Buffer;
  close(): void;
}

/** Starts TLS before that URL; its key is made in the folder. */
export async function startTlsPipe(target: string, folder: string): Promise<TlsPipe> {
  const { key, cert } = await makeCertificate(folder);
  const { port, hostname: host } = new URL(target);
  const server = createServer({ key, cert }, (client) => {
    const headgate = connect({ host, port: Number(port) });
    client.pipe(headgate).pipe(client);
    client.on('error', () => headgate.destroy());
    headgate.on('error', () => client.destroy());
    client.on('close', () => headgate.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const { port: own } = server.address() as AddressInfo;
  return {
    url: `https://localhost:${own}`,
    certificate: cert,
    close: () => void server.close(),
  };
}
