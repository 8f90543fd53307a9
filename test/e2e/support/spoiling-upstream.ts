import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';

const HEAD_END = '\r\n\r\n';

/** Bytes behind the end of an answer, by the way in which they come to be there. */
const SPOILT = {
  'beyond its length': `HTTP/1.1 200 OK\r\ncontent-length: 2${HEAD_END}{}{"more":true}`,
  'on a 204': `HTTP/1.1 204 No Content${HEAD_END}{"a":1}`,
  'on a 304': `HTTP/1.1 304 Not Modified\r\ncontent-length: 7${HEAD_END}{"a":1}`,
} as const;

export type Spoiling = keyof typeof SPOILT;

export const SPOILINGS = Object.keys(SPOILT) as readonly Spoiling[];

const CLEAN = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2${HEAD_END}{}`;

/** A provider that writes more than its answer to calls that ask for it with `x-spoil`. */
export interface SpoilingUpstream {
  readonly url: string;
  /** The calls, by their `x-label`, to which it wrote more than an answer. */
  readonly spoilt: ReadonlySet<string>;
  close(): Promise<void>;
}

/** Starts one on 127.0.0.1. It speaks plain TCP, because no server of Node's writes such answers. */
export async function startSpoilingUpstream(): Promise<SpoilingUpstream> {
  const spoilt = new Set<string>();
  const server = createServer((socket) => {
    let waiting = '';
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      waiting += data.toString('latin1');
      for (;;) {
        const end = waiting.indexOf(HEAD_END);
        const head = waiting.slice(0, Math.max(end, 0));
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
        if (end < 0 || waiting.length < end + HEAD_END.length + length) return;
        waiting = waiting.slice(end + HEAD_END.length + length);
        const label = /x-label: (.+)/i.exec(head)?.[1] ?? '';
        const spoiling = /x-spoil: (.+)/i.exec(head)?.[1] as Spoiling | undefined;
        if (spoiling !== undefined) spoilt.add(label);
        socket.write(spoiling === undefined ? CLEAN : SPOILT[spoiling]);
      }
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spoilt,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
      }),
  };
}
