import type { Schedule } from '../../runtime/clock.ts';
import { BoundWatch } from '../transfer/bound-watch.ts';
import type { CutReason } from '../../core/words/cut.ts';
import type { Frame } from './frame.ts';
import { closeFor, passedOn, type SocketClose } from './close.ts';

/**
 * Maximum bytes that one side has not accepted yet. A slow reader must not use up the memory that all connections
 * share.
 */
const UNSENT_BYTES_MAX = 4_194_304;

/** Bytes that are sent between two checks of the unsent bytes. Each check costs as much as a small message. */
const CHECK_EVERY_BYTES = 65_536;

/** How long the upstream may take to answer a close. Until then it may still count the session. */
const CLOSE_WAIT_MS = 3_000;

export interface SocketEnd {
  readonly by: 'caller' | 'upstream' | CutReason;
  /** The code of the close frame. 1005 if it had none, 1006 if there was no close frame. */
  readonly code: number;
}

interface PipeOptions {
  readonly after: Schedule;
  readonly breakUpstream: () => void;
  /** How long neither side may send anything. null means no limit. */
  readonly idleMs: number | null;
  /** Called as soon as no more messages are sent to either side. */
  readonly onEnd?: () => void;
  /** Receives the messages of one side. They are then not passed on automatically. */
  readonly onCaller?: (frame: Frame) => void;
  /** Further messages and the close of the upstream wait for the promise. */
  readonly onUpstream?: (frame: Frame) => Promise<void> | void;
}

/**
 * The two connections of a WebSocket, between which messages pass unchanged. The runtime answers pings on each
 * connection separately. Messages arrive complete, however they were split into frames.
 */
export class SocketPipe {
  readonly #caller: WebSocket;
  readonly #upstream: WebSocket;
  readonly #options: PipeOptions;
  readonly #idle: BoundWatch | null;
  readonly #done = Promise.withResolvers<SocketEnd>();
  #end: SocketEnd | null = null;
  /**
   * Messages and the close of the upstream that wait while one of its messages is processed. null if none is being
   * processed.
   */
  #waiting: (() => Promise<void> | void)[] | null = null;
  /** Whether the upstream has closed its side, even if some of its messages still wait. */
  #isClosing = false;
  /** Bytes sent to either side since the last check. */
  #uncheckedBytes = 0;

  /**
   * @param caller our end of a socket pair, not accepted yet
   * @param upstream the socket of the upstream's response, not accepted yet
   */
  constructor(caller: WebSocket, upstream: WebSocket, options: PipeOptions) {
    this.#caller = caller;
    this.#upstream = upstream;
    this.#options = options;
    const { idleMs, after } = options;
    const onOver = (): void => this.cut('idle');
    this.#idle = idleMs === null ? null : new BoundWatch({ afterMs: idleMs, onOver, after });
    this.#listen(caller, options.onCaller ?? ((frame) => this.toUpstream(frame)), 'caller');
    const { onUpstream } = options;
    // Only one in hundreds of events has to be waited for.
    const processUpstream =
      onUpstream &&
      ((frame: Frame): void => {
        if (this.#waiting === null) this.#waitFor(onUpstream(frame));
        else this.#waiting.push(() => onUpstream(frame));
      });
    this.#listen(upstream, processUpstream ?? ((frame) => this.toCaller(frame)), 'upstream');
    this.#idle?.begin();
  }

  /** Resolves when the upstream no longer holds the connection. */
  get done(): Promise<SocketEnd> {
    return this.#done.promise;
  }

  get isOpen(): boolean {
    return this.#end === null && !this.#isClosing;
  }

  toCaller(frame: Frame): void {
    this.#send(this.#caller, frame);
  }

  toUpstream(frame: Frame): void {
    this.#send(this.#upstream, frame);
  }

  /** Ends both connections with the reason, and with its detail for the caller. Only the first end counts. */
  cut(reason: CutReason, why = ''): void {
    if (this.#end !== null) return;
    const close = closeFor(reason, why);
    this.#ended({ by: reason, code: close.code });
    closeSide(this.#caller, close);
    closeSide(this.#upstream, close);
  }

  /** Bytes that the caller has not accepted yet. */
  get unsentBytes(): number {
    return this.#caller.bufferedAmount;
  }

  #listen(side: WebSocket, take: (frame: Frame) => void, from: 'caller' | 'upstream'): void {
    // Bytes would arrive as a Blob otherwise, which `send` does not accept.
    (side as { binaryType?: string }).binaryType = 'arraybuffer';
    side.addEventListener('message', ({ data }) => {
      // Messages that the upstream sends before it closes still count, but are not forwarded.
      const isRead = this.#end === null || (from === 'upstream' && this.#options.onUpstream);
      if (!isRead) return;
      if (this.#end === null) this.#idle?.begin();
      take(data as Frame);
    });
    const onClose = (code: number, reason: string): void => {
      if (from === 'caller') return this.#closed(from, code, reason);
      this.#isClosing = true;
      this.#process(() => this.#closed(from, code, reason));
    };
    side.addEventListener('close', ({ code, reason }) => onClose(code, reason));
    // A broken connection also fires a close event.
    side.addEventListener('error', () => onClose(1006, ''));
    // With half-open sockets, each side receives the close of the other one, instead of an automatic reply of the
    // runtime.
    side.accept({ allowHalfOpen: true });
  }

  /** Processes an event of the upstream after the message that is being processed. */
  #process(take: () => Promise<void> | void): void {
    if (this.#waiting === null) this.#waitFor(take());
    else this.#waiting.push(take);
  }

  #waitFor(processing: Promise<void> | void): void {
    if (processing === undefined) return;
    const waiting: (() => Promise<void> | void)[] = [];
    this.#waiting = waiting;
    const resume = (): void => {
      this.#waiting = null;
      for (const next of waiting) this.#process(next);
    };
    processing.then(resume, resume);
  }

  #send(side: WebSocket, frame: Frame): void {
    if (this.#end !== null) return;
    try {
      side.send(frame);
    } catch {
      // The side was closed in the meantime, and reports that itself.
      return;
    }
    this.#uncheckedBytes += typeof frame === 'string' ? frame.length : frame.byteLength;
    if (this.#uncheckedBytes >= CHECK_EVERY_BYTES) this.#checkUnsent();
  }

  #checkUnsent(): void {
    this.#uncheckedBytes = 0;
    const unsent = Math.max(this.#caller.bufferedAmount, this.#upstream.bufferedAmount);
    if (unsent > UNSENT_BYTES_MAX) this.cut('slow_reader');
  }

  #closed(from: 'caller' | 'upstream', code: number, reason: string): void {
    const isNews = this.#end === null;
    if (isNews) {
      this.#ended({ by: from, code });
      const close = passedOn(code, reason, from);
      closeSide(this.#caller, close);
      closeSide(this.#upstream, close);
    }
    if (from === 'upstream' && this.#end !== null) this.#done.resolve(this.#end);
  }

  /** Records the end. The upstream's connection always ends soon afterwards. */
  #ended(end: SocketEnd): void {
    this.#end = end;
    this.#idle?.stop();
    const { after, breakUpstream, onEnd } = this.#options;
    onEnd?.();
    after(CLOSE_WAIT_MS, () => {
      breakUpstream();
      this.#done.resolve(end);
    });
  }
}

function closeSide(side: WebSocket, { code, reason }: SocketClose): void {
  try {
    if (code === undefined) side.close();
    else side.close(code, reason);
  } catch {
    closeAnyhow(side);
  }
}

/** A reserved close code violates the protocol and cannot be passed on. */
function closeAnyhow(side: WebSocket): void {
  try {
    side.close(1002);
  } catch {
    // It has already ended.
  }
}
