import type { Agent, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { TlsAgent } from './tls-agent.ts';
import { promised } from './wait.ts';

/** How a client disconnects: an orderly close, a reset, or a close of its own direction only. */
export type Leaving = 'close' | 'reset' | 'half_close';

export interface CallOptions {
  readonly url: string;
  /** @default POST */
  readonly method?: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  /** @default a new connection */
  readonly agent?: Agent;
  /** Timeout of the response. @default none */
  readonly patienceMs?: number;
  readonly onEnd?: (end: CanaryCallEnd) => void;
}

/** The end of a call, with or without a response. */
export interface CanaryCallEnd {
  /** null if there was no response. */
  readonly status: number | null;
  /** Headgate's own reason. null if the response is not Headgate's. */
  readonly reason: string | null;
  readonly headers: IncomingHttpHeaders;
  /** The beginning of the body. */
  readonly text: string;
  readonly isComplete: boolean;
  /** The system's error if the body is incomplete. */
  readonly problem: string | null;
  /** Duration from the request to the end. */
  readonly ms: number;
  /** Bytes that the connection accepted, including headers. */
  readonly bytesSent: number;
}

export interface OpenCall {
  /** Resolves with the status once the headers have arrived, or with null if the call ends before. Never rejects. */
  readonly answered: Promise<number | null>;
  /** Never rejects. */
  readonly ended: Promise<CanaryCallEnd>;
  leave(how: Leaving): void;
}

/** Maximum characters of a response that are kept. */
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
    () => outgoing.destroy(new Error(`timeout after ${patienceMs} ms`)),
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

/** Describes a response as `429 busy`, `200` or `no response (ECONNRESET)`. */
export function nameOf(end: CanaryCallEnd): string {
  if (end.status === null) return `no response (${end.problem})`;
  const cut = end.isComplete ? '' : ', cut off';
  return `${end.status}${end.reason === null ? '' : ` ${end.reason}`}${cut}`;
}
