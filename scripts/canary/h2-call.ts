import type { ClientHttp2Session } from 'node:http2';
import { connect, constants } from 'node:http2';
import type { CallOptions } from './call.ts';
import { promised } from './wait.ts';

/** How a caller leaves: it takes back the call alone, or closes the whole connection. */
export type H2Leaving = 'stream_reset' | 'connection_close';

/** A call over HTTP/2, as far as its leaving is looked at. */
export interface OpenH2Call {
  /** Resolves with the headers' status, or with null where the call ended before. Never rejects. */
  readonly answered: Promise<number | null>;
  leave(how: H2Leaving): void;
}

/** Sends a call over HTTP/2, on a connection of its own. */
export function openH2Call({ url, headers, body }: CallOptions): OpenH2Call {
  const { origin, pathname, search } = new URL(url);
  const session: ClientHttp2Session = connect(origin);
  const answered = promised<number | null>();
  const stream = session.request({ ...headers, ':method': 'POST', ':path': pathname + search });
  for (const each of [session, stream]) {
    each.on('error', () => answered.resolve(null));
    each.on('close', () => answered.resolve(null));
  }
  stream.on('response', (head) => answered.resolve(head[':status'] ?? null));
  stream.resume();
  stream.end(body);
  return {
    answered: answered.promise,
    leave(how) {
      if (how === 'connection_close') return session.destroy();
      stream.close(constants.NGHTTP2_CANCEL);
      // The connection itself stays open for a while, as that of a browser does.
      setTimeout(() => session.destroy(), 60_000).unref();
    },
  };
}
