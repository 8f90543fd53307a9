import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { ClientOptions, RawData } from 'ws';
import { WebSocket } from 'ws';

/** However busy the machine is. */
export const PATIENT = { timeout: 40_000 };

/** A message as it came: text, or bytes. */
export type Message = string | Buffer;

/** A WebSocket as its client sees it. */
export class SocketClient {
  readonly socket: WebSocket;
  readonly messages: Message[] = [];
  bytes = 0;
  /** Code and reason of the close; of an upgrade that is refused its status and body. */
  readonly end: Promise<readonly [number, string]>;
  #end: readonly [number, string] | null = null;

  /** @param keeps false: messages are counted, and forgotten */
  constructor(url: string, options: ClientOptions = {}, keeps = true) {
    this.socket = new WebSocket(url.replace(/^http/, 'ws'), options);
    this.socket.on('message', (data: RawData, isBinary: boolean) => {
      const bytes = data as Buffer;
      this.bytes += bytes.length;
      if (keeps) this.messages.push(isBinary ? bytes : bytes.toString('utf8'));
    });
    this.socket.on('error', () => {});
    this.end = this.#ends();
  }

  async #ends(): Promise<readonly [number, string]> {
    this.#end = await new Promise<readonly [number, string]>((resolve) => {
      this.socket.once('close', (code, reason) => resolve([code, reason.toString('utf8')]));
      this.socket.once('unexpected-response', (request, response) => {
        let body = '';
        response.socket.on('error', () => {});
        response.on('error', () => {});
        response.on('data', (data: Buffer) => (body += data.toString()));
        response.on('end', () => {
          resolve([response.statusCode ?? 0, body]);
          request.destroy();
        });
      });
    });
    return this.#end;
  }

  get hasEnded(): boolean {
    return this.#end !== null;
  }

  async opened(): Promise<this> {
    await once(this.socket, 'open');
    return this;
  }

  /** The connection below. */
  get connection(): Socket {
    return (this.socket as unknown as { readonly _socket: Socket })._socket;
  }

  /** Sends a message and waits for what comes next. */
  async ask(message: Message): Promise<Message | undefined> {
    const before = this.messages.length;
    const next = once(this.socket, 'message');
    this.socket.send(message);
    await next;
    return this.messages[before];
  }
}
