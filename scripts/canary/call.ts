import type { Agent, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { TlsAgent } from './tls-agent.ts';
import { promised } from './wait.ts';

/** How a caller leaves: in good order, with a reset, or by closing its own direction alone. */
export type Leaving = 'close' | 'reset' | 'half_close';

export interface CallOptions {
  readonly url: string;
  /** @default POST */
  readonly method?: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  /** @default a connection of its own */
  readonly agent?: Agent;
  /** How long an answer may take until the caller gives up. @default as long as it takes */
  readonly patienceMs?: number;
  readonly onEnd?: (end: CanaryCallEnd) => void;
}

/** The end of a call, with an answer or without. */
export interface CanaryCallEnd {
  /** Null: there was no answer. */
  readonly status: number | null;
  /** Headgate's own reason; null: the answer is not its. */
  readonly reason: string | null;
  readonly headers: IncomingHttpHeaders;
  /** The beginning of the body. */
  readonly text: string;
  /** The body came to its end. */
  readonly isComplete: boolean;
  /** Why it did not, in the words of the system. */
  readonly problem: string | null;
  /** From the sending to the end. */
  readonly ms: number;
  /** Bytes that the connection had taken by then, headers included. */
  readonly bytesSent: number;
}

export interface OpenCall {
  /** Resolves with the headers' status, or with null where the call ended before. Never rejects. */
  readonly answered: Promise<number | null>;
  /** Never rejects. */
  readonly ended: Promise<CanaryCallEnd>;
  leave(how: Leaving): void;
}

/** Maximum characters of an answer that are kept. */
const TEXT_MAX = 65_536;

/** Sends a call over HTTP/1.1. */
export function openCall(options: CallOptions): OpenCall {
  const { url, method = 'POST', headers, body, agent, patienceMs, onEnd } = options;
  const startedAt = performance.now();
  const isSecure = url.startsWith('https:');
  const send = isSecure ? requestHttps : requestHttp;
  const own = isSecure && agent === undefined ? new TlsAgent() : null;
  const outgoing = send(url, {
    method,
    agent: agent ?? own ?? false,
    headers: withLength(headers, body),
  });
  const answered = promised<number | null>();
  const ended = promised<CanaryCallEnd>();
  let answer: IncomingMessage | null = null;
  let text = '';
  let problem: string | null = null;
  const patience = setTimeout(
    () => outgoing.destroy(new Error(`no end within ${patienceMs} ms`)),
    patienceMs ?? 2 ** 31 - 1,
  );
  let isOver = false;
  const end = (isComplete: boolean): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(patience);
    const ms = performance.now() - startedAt;
    const reason = answer?.headers['headgate-reason'];
    answered.resolve(answer?.statusCode ?? null);
    const whole: CanaryCallEnd = {
      status: answer?.statusCode ?? null,
      reason: typeof reason === 'string' ? reason : null,
      headers: answer?.headers ?? {},
      text,
      isComplete,
      problem: isComplete ? null : (problem ?? 'closed'),
      ms,
      bytesSent: outgoing.socket?.bytesWritten ?? 0,
    };
    ended.resolve(whole);
    onEnd?.(whole);
  };
  outgoing.on('error', (error: NodeJS.ErrnoException) => (problem = error.code ?? error.message));
  outgoing.on('response', (response) => {
    answer = response;
    answered.resolve(response.statusCode ?? null);
    response.setEncoding('utf8');
    response.on('data', (data: string) => {
      if (text.length < TEXT_MAX) text += data;
    });
    response.on('error', (error: NodeJS.ErrnoException) => (problem = error.code ?? error.message));
    response.on('end', () => end(response.complete));
  });
  outgoing.on('close', () => end(false));
  outgoing.end(body);
  return {
    answered: answered.promise,
    ended: ended.promise,
    leave(how) {
      const { socket } = outgoing;
      if (how === 'reset') (own?.tcp ?? socket)?.resetAndDestroy();
      else if (how === 'half_close') socket?.end();
      else outgoing.destroy();
    },
  };
}

function withLength(
  headers: Readonly<Record<string, string>>,
  body: string | Buffer,
): Record<string, string> {
  return { ...headers, 'content-length': String(Buffer.byteLength(body)) };
}

/** Names an answer as `429 busy`, `200` or `no answer (ECONNRESET)`. */
export function nameOf(end: CanaryCallEnd): string {
  if (end.status === null) return `no answer (${end.problem})`;
  const cut = end.isComplete ? '' : ', cut off';
  return `${end.status}${end.reason === null ? '' : ` ${end.reason}`}${cut}`;
}
