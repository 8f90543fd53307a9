import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { clock } from './lifecycle-wait.ts';

export interface LifecycleCallOptions {
  /** @default POST */
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Content-Length of a call whose body is never to end. @default that of the body */
  readonly bodyBytes?: number;
  /** From where it is sent, as 127.0.0.2. @default wherever the machine sends it from */
  readonly from?: string;
}

/** A piece of a response's body, as it came off the wire. */
interface LifecycleCallReceived {
  readonly at: number;
  readonly data: Buffer;
}

/** How a call ended: with its last byte, or before it. */
type LifecycleCallEnd = 'complete' | 'cut';

/** How a client leaves: in good order, or with a reset. */
export type LifecycleCallLeaving = 'FIN' | 'RST';

/** A call on a connection of its own, whose bytes nobody unpacks and whose socket can be taken away. */
export interface LifecycleOpenCall {
  /** Resolves with the status when the headers are here; rejects if the connection breaks before. */
  readonly answered: Promise<number>;
  /** Never rejects. */
  readonly ended: Promise<LifecycleCallEnd>;
  readonly headers: () => IncomingHttpHeaders;
  readonly received: () => readonly LifecycleCallReceived[];
  readonly bytes: () => Buffer;
  readonly text: () => string;
  leave(how: LifecycleCallLeaving): void;
}

/** Sends a call. */
export function openCall(url: string, options: LifecycleCallOptions): LifecycleOpenCall {
  const { method = 'POST', path, headers = {}, body = '' } = options;
  const { bodyBytes = Buffer.byteLength(body), from } = options;
  const received: LifecycleCallReceived[] = [];
  let answer: IncomingMessage | null = null;
  const outgoing = request(`${url}${path}`, {
    ...(from !== undefined && { localAddress: from }),
    method,
    agent: false,
    headers: { ...headers, 'content-length': bodyBytes },
  });
  outgoing.setNoDelay(true);
  const answered = new Promise<number>((resolve, reject) => {
    outgoing.once('response', (response) => {
      answer = response;
      response.on('data', (data: Buffer) => received.push({ at: clock(), data }));
      resolve(response.statusCode ?? 0);
    });
    outgoing.once('close', () => reject(new Error('the connection broke before the headers')));
    outgoing.on('error', reject);
  });
  // Not everybody who opens a call waits for its headers.
  answered.catch(() => undefined);
  const ended = new Promise<LifecycleCallEnd>((resolve) => {
    outgoing.once('close', () => resolve(answer?.complete === true ? 'complete' : 'cut'));
    outgoing.once('response', (response) => {
      response.once('error', () => undefined);
      response.once('end', () => resolve('complete'));
    });
  });
  if (bodyBytes > Buffer.byteLength(body)) outgoing.write(body);
  else outgoing.end(body);
  const bytes = (): Buffer => Buffer.concat(received.map(({ data }) => data));
  return {
    answered,
    ended,
    headers: () => answer?.headers ?? {},
    received: () => received,
    bytes,
    text: () => bytes().toString('utf8'),
    leave(how) {
      if (how === 'FIN') outgoing.socket?.end();
      else outgoing.socket?.resetAndDestroy();
    },
  };
}

/** Options of a streaming chat call. */
export interface ChatOptions {
  /** @default /practice/v1/chat/completions */
  readonly path?: string;
  /** @default practice */
  readonly model?: string;
  /** By which the upstream's list of arrivals names the call. */
  readonly label: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** @default true */
  readonly stream?: boolean;
  readonly from?: string;
}

/** Sends a chat call. */
export function openChat(url: string, options: ChatOptions): LifecycleOpenCall {
  const { path = '/practice/v1/chat/completions', model = 'practice', label } = options;
  const { stream = true } = options;
  return openCall(url, {
    path,
    ...(options.from !== undefined && { from: options.from }),
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${options.key ?? 'practice-key'}`,
      'x-label': label,
      ...options.headers,
    },
    body: JSON.stringify({
      model,
      stream,
      messages: [{ role: 'user', content: `Tell me of ${label}.` }],
    }),
  });
}
