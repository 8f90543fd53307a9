import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Stands between a client and a Headgate, and tells how many pieces of an answer have passed. */
export interface ChunkTap {
  readonly url: string;
  /** How many calls came. */
  readonly calls: () => number;
  /** Resolves once so many pieces of an answer have passed. */
  passed(chunks: number): Promise<void>;
  close(): Promise<void>;
}

export async function startChunkTap(headgate: string): Promise<ChunkTap> {
  let calls = 0;
  let chunks = 0;
  let waiting: { readonly for: number; readonly resolve: () => void }[] = [];
  const server = createServer((incoming, outgoing) => {
    calls += 1;
    const { method, url = '/', headers } = incoming;
    const onward = request(new URL(url, headgate), { method: method ?? 'GET', headers });
    onward.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      outgoing.flushHeaders();
      answer.on('data', (chunk: Buffer) => {
        outgoing.write(chunk);
        chunks += 1;
        for (const one of waiting) if (one.for <= chunks) one.resolve();
        waiting = waiting.filter((one) => one.for > chunks);
      });
      answer.on('end', () => outgoing.end());
      answer.on('error', () => outgoing.destroy());
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    calls: () => calls,
    async passed(wanted) {
      if (chunks >= wanted) return;
      const { promise, resolve } = Promise.withResolvers<undefined>();
      waiting.push({ for: wanted, resolve: () => resolve(undefined) });
      await promise;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
