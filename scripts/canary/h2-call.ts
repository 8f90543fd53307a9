import type { ClientHttp2Session } from 'node:http2';
import { connect, constants } from 'node:http2';
import type { CallOptions } from './call.ts';
import { promised } from './wait.ts';

/** How a client disconnects: it cancels the stream, or closes the whole connection. */
export type H2Leaving = 'stream_reset' | 'connection_close';

export interface OpenH2Call {
  /** Resolves with the status once the headers have arrived, or with null if the call ends before. Never rejects. */
  readonly answered: Promise<number | null>;
  leave(how: H2Leaving): void;
}

/** Sends a call over HTTP/2 on a new connection. */
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
      // The connection stays open for a while, as a browser's does.
      setTimeout(() => session.destroy(), 60_000).unref();
    },
  };
}
