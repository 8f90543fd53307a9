import { Socket } from 'node:net';

/**
 * Shared read buffer of all connections to workerd. The data is copied before the next read. Allocating a buffer for
 * each read would be most of the cost of forwarding a small chunk.
 */
const READ_BUFFER = Buffer.allocUnsafeSlow(65_536);

/** On Windows, reads may be in progress on several connections at once. */
const readBuffer = (): Buffer =>
  process.platform === 'win32' ? Buffer.allocUnsafeSlow(READ_BUFFER.length) : READ_BUFFER;

type WriteCallback = (error?: Error | null) => void;

/**
 * A connection to workerd that is read to its end even if a write fails. workerd responds to some requests before their
 * body ends, reads little more of it, and closes the connection. The next write then fails before the response has been
 * read, and a plain socket would discard the response.
 */
export class WorkerdSocket extends Socket {
  #isBroken = false;

  /** Whether workerd accepts no more bytes. Further writes are discarded. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  override _write(chunk: unknown, encoding: BufferEncoding, done: WriteCallback): void {
    super._write(chunk, encoding, (error) => this.#settle(error, done));
  }

  override _writev(
    chunks: { readonly chunk: unknown; readonly encoding: BufferEncoding }[],
    done: WriteCallback,
  ): void {
    super._writev?.([...chunks], (error) => this.#settle(error, done));
  }

  /** The reader sees the failure as the end of the connection, after all bytes that workerd has sent. */
  #settle(error: Error | null | undefined, done: WriteCallback): void {
    if (error) this.#isBroken = true;
    done();
  }
}

/**
 * Connects to workerd. `take` receives the bytes, which are valid until it returns. If it returns false, the socket
 * pauses.
 */
export function connectToWorkerd(
  port: number,
  take: (socket: WorkerdSocket, bytes: Buffer) => boolean,
): WorkerdSocket {
  const buffer = readBuffer();
  const socket: WorkerdSocket = new WorkerdSocket({
    allowHalfOpen: true,
    onread: { buffer, callback: (size) => take(socket, buffer.subarray(0, size)) },
  });
  socket.setNoDelay(true);
  return socket.connect(port, '127.0.0.1');
}
