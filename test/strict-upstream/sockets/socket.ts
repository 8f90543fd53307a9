import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { RawData } from 'ws';
import { WebSocket } from 'ws';
import type { StrictScope } from '../scope.ts';
import type { StrictBehaviour } from '../settings.ts';
import type { SeenSocket } from './seen.ts';

/** Tells before a close goes out, its own or its answer to the client's. */
export class TellingWebSocket extends WebSocket {
  override close(code?: number, reason?: string | Buffer): void {
    this.emit('closing');
    super.close(code, reason);
  }
}

/** How a WebSocket ended: with a close, without one by its client, or by the upstream. */
export type StrictSocketEnd = 'done' | 'aborted' | 'broken';

const buffered = (data: RawData): Buffer =>
  Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer);

interface SocketFacts {
  readonly seen: SeenSocket;
  readonly behaviour: StrictBehaviour;
  /**
   * Called when it ends, before the close goes out: who has that is right to take it for over. May be called again.
   */
  readonly onEnd: (how: StrictSocketEnd) => void;
}

/** One WebSocket, with what was seen of it. */
export class StrictSocket {
  readonly seen: SeenSocket;
  /** Behaviour that the upgrade asked for. */
  readonly behaviour: StrictBehaviour;
  /** Aborted once it is closed: every wait ends there. */
  readonly gone: AbortSignal;
  readonly scope: StrictScope;
  readonly #socket: WebSocket;
  readonly #connection: Socket;
  readonly #gone = new AbortController();
  readonly #onEnd: (how: StrictSocketEnd) => void;

  constructor(
    scope: StrictScope,
    socket: WebSocket,
    connection: Socket,
    { seen, behaviour, onEnd }: SocketFacts,
  ) {
    this.scope = scope;
    this.seen = seen;
    this.behaviour = behaviour;
    this.gone = this.#gone.signal;
    this.#socket = socket;
    this.#connection = connection;
    this.#onEnd = onEnd;
    scope.sockets.add(this);
    socket.on('ping', () => (seen.pings += 1));
    socket.on('pong', () => (seen.pongs += 1));
    socket.on('error', (error) => (seen.error = error.message));
    socket.once('closing', () => onEnd('done'));
    socket.once('close', (code, reason) => this.#closed(code, reason));
  }

  /** Hands over the messages of the client, as text or as bytes. */
  onMessage(take: (data: string | Buffer) => void): void {
    const { seen, scope } = this;
    this.#socket.on('message', (raw, isBinary) => {
      const bytes = buffered(raw);
      const data = isBinary ? bytes : bytes.toString('utf8');
      seen.messageCount += 1;
      seen.messageBytes += bytes.length;
      if (scope.settings.keepsRequests) {
        seen.messages.push(
          typeof data === 'string' ? { text: data } : { base64: data.toString('base64') },
        );
      }
      take(data);
    });
  }

  /** Sends a message, and waits until the kernel has it. */
  async send(data: string | Buffer, { binary, fragments } = this.behaviour): Promise<void> {
    const bytes = Buffer.from(data as string);
    const isBinary = binary || typeof data !== 'string';
    const size = Math.max(1, Math.ceil(bytes.length / fragments));
    let from = 0;
    do {
      const part = bytes.subarray(from, from + size);
      from += size;
      await this.#write(part, isBinary, from >= bytes.length);
    } while (from < bytes.length);
  }

  async #write(part: Buffer, binary: boolean, fin: boolean): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#socket.send(part, { binary, fin }, (error) => (error ? reject(error) : resolve()));
    });
    this.seen.sentBytes += part.length;
    if (this.#connection.writableNeedDrain) {
      await once(this.#connection, 'drain', { signal: this.gone });
    }
  }

  /** Sends bytes that need not be a frame. */
  sendRaw(bytes: Buffer): void {
    this.#connection.write(bytes);
  }

  ping(): void {
    this.#socket.ping();
  }

  stall(): void {
    this.#socket.pause();
  }

  read(): void {
    this.#socket.resume();
  }

  close(code: number | null, reason: string | null): void {
    this.seen.closedBy ??= 'upstream';
    if (code === null) this.#socket.close();
    else this.#socket.close(code, reason ?? '');
  }

  /** Resets the connection, without a close. */
  cut(): void {
    this.seen.closedBy ??= 'upstream';
    this.#onEnd('broken');
    this.#connection.resetAndDestroy();
  }

  /** Does what the behaviour asks for of a WebSocket that has just opened. */
  async begin(): Promise<void> {
    const { closeCode, closeReason, closeAfterChunks, pingEveryMs } = this.behaviour;
    if (closeCode !== null && closeAfterChunks === null) this.close(closeCode, closeReason);
    if (pingEveryMs !== null) void this.#keepPinging(pingEveryMs).catch(() => {});
    await this.#flood();
  }

  async #keepPinging(everyMs: number): Promise<void> {
    for (;;) {
      await delay(everyMs, undefined, { signal: this.gone, ref: false });
      this.ping();
    }
  }

  async #flood(): Promise<void> {
    const { floodBytes, floodMessageBytes } = this.behaviour;
    if (floodBytes === null) return;
    // What can be compressed would be no flood where it is.
    const message = randomBytes(floodMessageBytes);
    for (let left = floodBytes; left > 0; left -= message.length) {
      if (this.gone.aborted) return;
      await this.send(message.subarray(0, left));
    }
  }

  #closed(code: number, reason: Buffer): void {
    const { seen } = this;
    seen.state = 'closed';
    seen.closeCode = code;
    seen.closeReason = reason.toString('utf8');
    seen.closedBy ??= code === 1006 ? 'cut' : 'client';
    this.scope.sockets.delete(this);
    this.#onEnd('aborted');
    this.#gone.abort();
  }
}
