import type { CutReason } from '../../core/words/outcome.ts';
import type { Schedule } from '../../runtime/async.ts';
import { BoundWatch } from '../transfer/watched-pipe.ts';
import type { Frame } from './messages.ts';

/** Joins both ends of a WebSocket session, and translates how each of them closes. */

/** The close of a WebSocket, as sent to one side. The code is absent if none was given. */
interface SocketClose {
  readonly code?: number;
  /** At most 123 bytes. */
  readonly reason?: string;
}

/** The close frame had no code (RFC 6455, 7.1.5). 1006 means that there was no close frame. */
const NO_CODE = 1005;
export const NO_FRAME = 1006;

const REASON_BYTES_MAX = 123;

const GOING_AWAY = 1001;
const TOO_BIG = 1009;
const INTERNAL_ERROR = 1011;
const INVALID_PAYLOAD = 1007;
const POLICY_VIOLATION = 1008;
const SERVICE_RESTART = 1012;
const TRY_AGAIN_LATER = 1013;

/**
 * The close code of each reason, from https://www.iana.org/assignments/websocket. Codes differ by whether the client
 * may reconnect immediately.
 */
const CODES: Readonly<Record<CutReason, number>> = {
  revoked: POLICY_VIOLATION,
  max_hold: POLICY_VIOLATION,
  idle: POLICY_VIOLATION,
  key_invalid: POLICY_VIOLATION,
  key_forbidden: POLICY_VIOLATION,
  upstream_closed: POLICY_VIOLATION,
  group_changed: SERVICE_RESTART,
  other_model: POLICY_VIOLATION,
  message_refused: POLICY_VIOLATION,
  message_unreadable: INVALID_PAYLOAD,
  overfull: TOO_BIG,
  restart: SERVICE_RESTART,
  draining: TRY_AGAIN_LATER,
  slow_reader: TRY_AGAIN_LATER,
  left: GOING_AWAY,
  body: INTERNAL_ERROR,
  slow: TRY_AGAIN_LATER,
  stalled: TRY_AGAIN_LATER,
  request_timeout: TRY_AGAIN_LATER,
};

/** The close for a reason, for both sides of a WebSocket. `why` must be ASCII. */
function closeFor(reason: CutReason, why = ''): Required<SocketClose> {
  const text = why === '' ? `headgate: ${reason}` : `headgate: ${reason}: ${why}`;
  return { code: CODES[reason], reason: text.slice(0, REASON_BYTES_MAX) };
}

/** The close that one side receives after the other one has ended the connection. */
function passedOn(code: number, reason: string, from: 'caller' | 'upstream'): SocketClose {
  if (code === NO_CODE) return {};
  if (code !== NO_FRAME) return { code, reason };
  return from === 'caller'
    ? { code: GOING_AWAY, reason: 'headgate: the client has gone' }
    : { code: INTERNAL_ERROR, reason: 'headgate: the connection to the upstream broke' };
}

/** Whether the upstream ended a WebSocket because of a failure. */
export function isFailure(code: number): boolean {
  return code === NO_FRAME || (code >= INTERNAL_ERROR && code <= 1014);
}

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
  /** How long neither side may send anything. null means no limit. */
  readonly idleMs: number | null;
  /** Called as soon as no more messages are sent to either side. */
  readonly onEnd?: () => void;
  /** Receives the messages of the caller. */
  readonly onCaller: (frame: Frame) => void;
}

interface UpstreamOptions {
  readonly breakUpstream: () => void;
  /** Receives its messages, which are then not passed on. Further ones and its close wait for the promise. */
  readonly onUpstream?: (frame: Frame) => Promise<void> | void;
  /** Whether the caller stays connected although this upstream has closed. Absent if it never does. */
  readonly isOutlived?: (code: number) => Promise<boolean>;
}

/**
 * A WebSocket of a caller and those of its upstreams, between which messages pass unchanged. The runtime answers pings
 * on each connection separately. Messages arrive complete, however they were split into frames.
 */
export class SocketPipe {
  readonly #caller: WebSocket;
  readonly #options: PipeOptions;
  readonly #idle: BoundWatch | null;
  readonly #upstreams = new Set<PipedUpstream>();
  readonly #done = Promise.withResolvers<SocketEnd>();
  #end: SocketEnd | null = null;
  /** Bytes sent to any side since the last check. */
  #uncheckedBytes = 0;

  /** @param caller our end of a socket pair, not accepted yet */
  constructor(caller: WebSocket, options: PipeOptions) {
    this.#caller = caller;
    this.#options = options;
    const { idleMs, after } = options;
    const onOver = (): void => this.cut('idle');
    this.#idle = idleMs === null ? null : new BoundWatch({ afterMs: idleMs, onOver, after });
    listen(caller, {
      take: (frame) => {
        if (this.#end !== null) return;
        this.#idle?.begin();
        options.onCaller(frame);
      },
      onClose: (code, reason) => this.#closeAll('caller', code, reason),
    });
    this.#idle?.begin();
  }

  /**
   * Adds an upstream.
   *
   * @param socket that of the upstream's response, not accepted yet
   */
  join(socket: WebSocket, options: UpstreamOptions): PipedUpstream {
    const upstream = new PipedUpstream(socket, options, {
      end: () => this.#end,
      noteFrame: () => this.#idle?.begin(),
      toCaller: (frame) => this.toCaller(frame),
      send: (frame) => this.#send(socket, frame),
      endAll: (code, reason) => this.#closeAll('upstream', code, reason),
      forget: (end) => {
        this.#upstreams.delete(upstream);
        this.#options.after(CLOSE_WAIT_MS, () => upstream.breakOff(end));
      },
    });
    this.#upstreams.add(upstream);
    upstream.begin();
    return upstream;
  }

  /** Resolves when no upstream holds its connection any more. */
  get done(): Promise<SocketEnd> {
    return this.#done.promise;
  }

  get isOpen(): boolean {
    return this.#end === null;
  }

  toCaller(frame: Frame): void {
    this.#send(this.#caller, frame);
  }

  /** Ends all connections with the reason, and with its detail for the caller. Only the first end counts. */
  cut(reason: CutReason, why = ''): void {
    if (this.#end !== null) return;
    const close = closeFor(reason, why);
    this.#ended({ by: reason, code: close.code }, close);
  }

  /** Bytes that the caller has not accepted yet. */
  get unsentBytes(): number {
    return this.#caller.bufferedAmount;
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
    const toUpstreams = [...this.#upstreams].map(({ unsentBytes }) => unsentBytes);
    if (Math.max(this.unsentBytes, ...toUpstreams) > UNSENT_BYTES_MAX) this.cut('slow_reader');
  }

  #closeAll(by: 'caller' | 'upstream', code: number, reason: string): void {
    if (this.#end === null) this.#ended({ by, code }, passedOn(code, reason, by));
  }

  /** Records the end. The connections of upstreams always end soon afterwards. */
  #ended(end: SocketEnd, close: SocketClose): void {
    this.#end = end;
    this.#idle?.stop();
    const { after, onEnd } = this.#options;
    onEnd?.();
    closeSide(this.#caller, close);
    const all = [...this.#upstreams];
    for (const upstream of all) upstream.close(close);
    after(CLOSE_WAIT_MS, () => {
      for (const upstream of all) upstream.breakOff(end);
    });
    const released = Promise.all(all.map(({ done }) => done));
    released.then(() => this.#done.resolve(end)).catch(() => {});
  }
}

/** What an upstream of a pipe needs from it. */
interface Pipe {
  readonly end: () => SocketEnd | null;
  readonly noteFrame: () => void;
  readonly toCaller: (frame: Frame) => void;
  readonly send: (frame: Frame) => void;
  readonly endAll: (code: number, reason: string) => void;
  /** Takes it out of the pipe, which goes on without it. */
  readonly forget: (end: SocketEnd) => void;
}

/** An upstream's side of a pipe. */
export class PipedUpstream {
  readonly #socket: WebSocket;
  readonly #options: UpstreamOptions;
  readonly #pipe: Pipe;
  readonly #done = Promise.withResolvers<SocketEnd>();
  /** Messages and its close that wait while a message is processed. null if none is being processed. */
  #waiting: (() => Promise<void> | void)[] | null = null;
  /** Whether it has closed its side, even if some of its messages still wait. */
  #isClosing = false;

  constructor(socket: WebSocket, options: UpstreamOptions, pipe: Pipe) {
    this.#socket = socket;
    this.#options = options;
    this.#pipe = pipe;
  }

  begin(): void {
    const { onUpstream } = this.#options;
    listen(this.#socket, {
      take: (frame) => {
        const hasEnded = this.#pipe.end() !== null;
        // Messages that it sends before it closes still count, but are not forwarded.
        if (hasEnded && onUpstream === undefined) return;
        if (!hasEnded) this.#pipe.noteFrame();
        if (onUpstream === undefined) this.#pipe.toCaller(frame);
        // Only one in hundreds of events has to be waited for.
        else if (this.#waiting === null) this.#waitFor(onUpstream(frame));
        else this.#waiting.push(() => onUpstream(frame));
      },
      onClose: (code, reason) => {
        this.#isClosing = true;
        this.#process(() => this.#closed(code, reason));
      },
    });
  }

  /** Resolves when the upstream no longer holds the connection. */
  get done(): Promise<SocketEnd> {
    return this.#done.promise;
  }

  get isOpen(): boolean {
    return this.#pipe.end() === null && !this.#isClosing;
  }

  get unsentBytes(): number {
    return this.#socket.bufferedAmount;
  }

  send(frame: Frame): void {
    this.#pipe.send(frame);
  }

  close(close: SocketClose): void {
    closeSide(this.#socket, close);
  }

  /** Closes it alone, because nothing more is sent to it. */
  leave(): void {
    this.#isClosing = true;
    this.close({ code: 1000 });
    this.#pipe.forget({ by: 'restart', code: 1000 });
  }

  /** Ends the connection of an upstream that does not answer a close. */
  breakOff(end: SocketEnd): void {
    this.#options.breakUpstream();
    this.#done.resolve(end);
  }

  /** Processes an event after the message that is being processed. */
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

  #closed(code: number, reason: string): Promise<void> | void {
    const { isOutlived } = this.#options;
    const isAlone = isOutlived === undefined || this.#pipe.end() !== null;
    if (isAlone) return this.#end(code, reason, false);
    return isOutlived(code).then((isIt) => this.#end(code, reason, isIt));
  }

  #end(code: number, reason: string, isOutlived: boolean): void {
    const end: SocketEnd = { by: 'upstream', code };
    if (isOutlived && this.#pipe.end() === null) {
      this.#pipe.forget(end);
      this.close(passedOn(code, reason, 'upstream'));
    } else {
      this.#pipe.endAll(code, reason);
    }
    this.#done.resolve(this.#pipe.end() ?? end);
  }
}

interface SocketListener {
  readonly take: (frame: Frame) => void;
  readonly onClose: (code: number, reason: string) => void;
}

function listen(side: WebSocket, { take, onClose }: SocketListener): void {
  // Bytes would arrive as a Blob otherwise, which `send` does not accept.
  (side as { binaryType?: string }).binaryType = 'arraybuffer';
  side.addEventListener('message', ({ data }) => take(data as Frame));
  side.addEventListener('close', ({ code, reason }) => onClose(code, reason));
  // A broken connection also fires a close event.
  side.addEventListener('error', () => onClose(1006, ''));
  // With half-open sockets, each side receives the close of the other one, instead of an automatic reply of the
  // runtime.
  side.accept({ allowHalfOpen: true });
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
