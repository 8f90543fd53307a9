import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A way to a server that counts what it is asked for: what a page costs is told where it arrives. */
export interface CountingProxy {
  readonly url: string;
  /** Requests that have arrived, as paths, without the streams of events. */
  readonly requests: readonly string[];
  /** Streams of events that were opened, and those that are open. */
  readonly streams: () => { readonly opened: number; readonly open: number };
  close(): void;
}

/** Starts one before the server. */
export async function startCountingProxy(target: () => string): Promise<CountingProxy> {
  const requests: string[] = [];
  let opened = 0;
  let open = 0;
  const server = createServer((incoming, outgoing) => {
    const { url = '/', method, headers } = incoming;
    if (url.startsWith('/admin/api/events')) {
      opened += 1;
      open += 1;
      outgoing.once('close', () => (open -= 1));
    } else {
      requests.push(url);
    }
    const onward = request(`${target()}${url}`, { method, headers, agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('error', () => outgoing.destroy());
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.once('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    streams: () => ({ opened, open }),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
