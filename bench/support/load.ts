import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const HEAD_END = '\r\n\r\n';
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

/** One keep-alive connection that sends one request at a time. It reads no more HTTP than it needs. */
export class LoadCaller {
  readonly #socket: Socket;
  #whenDone: ((status: number) => void) | null = null;
  #whenBroken: ((error: Error) => void) | null = null;
  /** Bytes of the answer so far, until its head is whole. */
  #head: Buffer = Buffer.alloc(0);
  /** Bytes to come; null: the head is not there yet; Infinity: chunked. */
  #left: number | null = null;
  #status = 0;
  #tail: Buffer = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (data) => this.#take(data));
    socket.on('error', (error) => this.#whenBroken?.(error));
    socket.on('close', () => this.#whenBroken?.(new Error('the connection was closed')));
  }

  static open(port: number): Promise<LoadCaller> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true });
      socket.once('error', reject);
      socket.once('connect', () => resolve(new LoadCaller(socket)));
    });
  }

  /** Sends a request and resolves when the last byte of its answer is there; fails unless that is a success. */
  async call(request: Buffer): Promise<void> {
    const status = await this.statusOf(request);
    if (status === 200) return;
    throw new Error(`unexpected answer: ${this.#head.toString('latin1')}`);
  }

  /** The same, with any status, which it answers. */
  statusOf(request: Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#whenDone = resolve;
      this.#whenBroken = reject;
      this.#head = Buffer.alloc(0);
      this.#left = null;
      this.#tail = Buffer.alloc(0);
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#whenBroken = null;
    this.#socket.destroy();
  }

  #take(data: Buffer): void {
    if (this.#left === null) {
      this.#head = this.#head.length === 0 ? data : Buffer.concat([this.#head, data]);
      const headLength = this.#head.indexOf(HEAD_END) + HEAD_END.length;
      if (headLength < HEAD_END.length) return;
      const head = this.#head.toString('latin1', 0, headLength);
      this.#status = Number(head.slice(9, 12));
      const length = /content-length: *(\d+)/i.exec(head)?.[1];
      this.#left = length === undefined ? Infinity : Number(length);
      this.#takeBody(this.#head.subarray(headLength));
    } else {
      this.#takeBody(data);
    }
  }

  #takeBody(data: Buffer): void {
    if (this.#left === null) return;
    if (this.#left === Infinity) {
      const seen = data.length >= LAST_CHUNK.length ? data : Buffer.concat([this.#tail, data]);
      this.#tail = seen.subarray(-LAST_CHUNK.length);
      if (!this.#tail.equals(LAST_CHUNK)) return;
    } else {
      this.#left -= data.length;
      if (this.#left > 0) return;
    }
    this.#whenDone?.(this.#status);
  }
}

async function openCallers(port: number, count: number): Promise<LoadCaller[]> {
  return Promise.all(Array.from({ length: count }, () => LoadCaller.open(port)));
}

export interface LoadResult {
  readonly calls: number;
  readonly seconds: number;
  /** In milliseconds, in no order. */
  readonly latenciesMs: readonly number[];
}

export interface Load {
  readonly port: number;
  /** Makes the bytes of the next call. */
  readonly request: () => Buffer;
  readonly callers: number;
  /** Called when the warm-up is over and again at the end. */
  readonly mark: () => void;
}

/** Each caller sends its next call when the last one has ended, for so long after a warm-up. */
export async function callsFor(
  { port, request, callers, mark }: Load,
  warmUpMs: number,
  measuredMs: number,
): Promise<LoadResult> {
  const connections = await openCallers(port, callers);
  const latenciesMs: number[] = [];
  let isMeasuring = false;
  let isOver = false;
  const run = async (caller: LoadCaller): Promise<void> => {
    while (!isOver) {
      const sentAt = performance.now();
      await caller.call(request());
      if (isMeasuring) latenciesMs.push(performance.now() - sentAt);
    }
  };
  const watch = async (): Promise<number> => {
    await delay(warmUpMs);
    mark();
    isMeasuring = true;
    const startedAt = performance.now();
    await delay(measuredMs);
    mark();
    isMeasuring = false;
    isOver = true;
    return (performance.now() - startedAt) / 1_000;
  };
  try {
    const [seconds] = await Promise.all([watch(), ...connections.map(run)]);
    return { calls: latenciesMs.length, seconds, latenciesMs };
  } finally {
    isOver = true;
    for (const connection of connections) connection.close();
  }
}

/** All callers read one stream each, at the same time. */
export async function streamsAtOnce({ port, request, callers, mark }: Load): Promise<LoadResult> {
  const connections = await openCallers(port, callers);
  try {
    mark();
    const startedAt = performance.now();
    const latenciesMs = await Promise.all(
      connections.map(async (caller) => {
        await caller.call(request());
        return performance.now() - startedAt;
      }),
    );
    const seconds = (performance.now() - startedAt) / 1_000;
    mark();
    return { calls: callers, seconds, latenciesMs };
  } finally {
    for (const connection of connections) connection.close();
  }
}
