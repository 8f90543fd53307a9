import { Socket } from 'node:net';

/**
 * Memory that all connections to workerd are read into: what is read is copied before the next read. A buffer of its
 * own for each read is most of what passing on a small piece of a stream costs.
 */
const READ_BUFFER = Buffer.allocUnsafeSlow(65_536);

/** On Windows, reads may be in progress on several connections at once. */
const readBuffer = (): Buffer =>
  process.platform === 'win32' ? Buffer.allocUnsafeSlow(READ_BUFFER.length) : READ_BUFFER;

type WriteCallback = (error?: Error | null) => void;

/**
 * A connection to workerd that is read to its end even if a write fails. workerd answers some requests before their body
 * ends, reads little more of it, and closes the connection. The next write then fails while the answer still waits to be
 * read, and a plain socket would discard it.
 */
export class WorkerdSocket extends Socket {
  #isBroken = false;

  /** Whether workerd takes no more bytes. Those that are written are discarded. */
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

  /** The failure reaches the reader as the end of the connection, behind all that workerd has sent. */
  #settle(error: Error | null | undefined, done: WriteCallback): void {
    if (error) this.#isBroken = true;
    done();
  }
}

/** Connects to workerd. `take` receives what is read, valid until it returns. If it returns false, the socket pauses. */
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
