import { connect } from 'node:net';

/** One answer as it stood on the connection. */
interface SupportWireAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

interface WireRead {
  readonly answers: readonly SupportWireAnswer[];
  /** Rest behind them: the beginning of another one, or what is none. */
  readonly rest: string;
}

/** Takes a chunked body apart, or null where its end is not there yet. */
function readChunks(text: string): { readonly body: string; readonly length: number } | null {
  let body = '';
  let at = 0;
  for (;;) {
    const size = /^([\da-f]+)\r\n/i.exec(text.slice(at, at + 20));
    if (size === null) return null;
    const length = Number.parseInt(size[1] ?? '0', 16);
    at += size[0].length;
    if (text.length < at + length + 2) return null;
    body += text.slice(at, at + length);
    at += length + 2;
    if (length === 0) return { body, length: at };
  }
}

/** Reads answers one after the other, by their lengths alone. */
function readAnswers(text: string): WireRead {
  const answers: SupportWireAnswer[] = [];
  let rest = text;
  for (;;) {
    const end = rest.indexOf('\r\n\r\n');
    const status = /^HTTP\/1\.1 (\d{3}) /.exec(rest)?.[1];
    if (end < 0 || status === undefined) return { answers, rest };
    const head = rest.slice(0, end);
    const behind = rest.slice(end + 4);
    const chunks = /^transfer-encoding: chunked$/im.test(head) ? readChunks(behind) : undefined;
    if (chunks === null) return { answers, rest };
    const length = chunks?.length ?? Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
    if (behind.length < length) return { answers, rest };
    answers.push({ status: Number(status), head, body: chunks?.body ?? behind.slice(0, length) });
    rest = behind.slice(length);
  }
}

/** Outcome of a connection. */
export interface WireExchange extends WireRead {
  readonly isReset: boolean;
}

interface ExchangeOptions {
  readonly withinMs?: number;
  /** Gives the last piece when it is time for it. */
  readonly last?: () => Promise<Buffer>;
}

/**
 * Sends pieces of bytes over one connection, and reads until it has so many answers and nothing behind
 * them, or the connection ends, or it takes too long.
 */
export function exchange(
  port: number,
  pieces: readonly Buffer[],
  wanted: number,
  { withinMs = 20_000, last }: ExchangeOptions = {},
): Promise<WireExchange> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    let text = '';
    let isReset = false;
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ ...readAnswers(text), isReset });
    };
    const timer = setTimeout(finish, withinMs);
    socket.on('data', (data: Buffer) => {
      text += data.toString('latin1');
      const { answers, rest } = readAnswers(text);
      if (answers.length >= wanted && rest === '') finish();
    });
    socket.on('error', () => {
      isReset = true;
      finish();
    });
    socket.on('end', finish);
    for (const piece of pieces) socket.write(piece);
    last?.().then((piece) => socket.write(piece), reject);
  });
}
