import type { Schedule } from '../../runtime/call-clock.ts';
import { BoundWatch } from '../transfer/bound-watch.ts';
import type { CutReason } from '../../core/words/cut.ts';
import type { Frame } from './frame.ts';
import { closeFor, passedOn, type SocketClose } from './close.ts';

/** Maximum bytes that one side has not taken yet. A slow reader must not grow the memory that all connections share. */
const UNSENT_BYTES_MAX = 4_194_304;

/** Bytes that are sent to a side between two looks at what it has not taken: each look costs as much as a small message. */
const LOOK_EVERY_BYTES = 65_536;

/** How long the upstream may take to answer a close. Until then it may count the session. */
const CLOSE_WAIT_MS = 3_000;

/** The end of a WebSocket: who has ended it, and how. */
export interface SocketEnd {
  readonly by: 'caller' | 'upstream' | CutReason;
  /** That of the close frame; 1005: it had none, 1006: none came. */
  readonly code: number;
}

interface PipeOptions {
  readonly after: Schedule;
  /** Breaks the connection to the upstream. */
  readonly breakUpstream: () => void;
  /** How long neither side may send anything. Null: for ever. */
  readonly idleMs: number | null;
  /** Hears at once that neither side takes anything any more. */
  readonly onEnd?: () => void;
  /** Take what one side sends, in place of passing it on. */
  readonly onCaller?: (frame: Frame) => void;
  /** The upstream's next word or deed waits for the promise. */
  readonly onUpstream?: (frame: Frame) => Promise<void> | void;
}

/**
 * A WebSocket's two connections, between which messages pass unchanged. Pings are answered by the runtime, on each connection by
 * itself; messages come whole, however they were cut into frames.
 */
export class SocketPipe {
  readonly #caller: WebSocket;
  readonly #upstream: WebSocket;
  readonly #options: PipeOptions;
  readonly #idle: BoundWatch | null;
  readonly #done = Promise.withResolvers<SocketEnd>();
  #end: SocketEnd | null = null;
  /** Words and deeds of the upstream while a message of it is looked into; null: none is. */
  #behind: (() => Promise<void> | void)[] | null = null;
  /** The upstream has closed its side, whatever of it waits yet. */
  #isClosing = false;
  /** Sent since the last look, to either side. */
  #unseenBytes = 0;

  /** @param caller the end of ours of a pair, @param upstream of an answer; neither accepted yet */
  constructor(caller: WebSocket, upstream: WebSocket, options: PipeOptions) {
    this.#caller = caller;
    this.#upstream = upstream;
    this.#options = options;
    const { idleMs, after } = options;
    const onOver = (): void => this.cut('idle');
    this.#idle = idleMs === null ? null : new BoundWatch({ afterMs: idleMs, onOver, after });
    this.#listen(caller, options.onCaller ?? ((frame) => this.toUpstream(frame)), 'caller');
    const { onUpstream } = options;
    // Hundreds of events come for each that must be waited for.
    const hear =
      onUpstream &&
      ((frame: Frame): void => {
        if (this.#behind === null) this.#waitFor(onUpstream(frame));
        else this.#behind.push(() => onUpstream(frame));
      });
    this.#listen(upstream, hear ?? ((frame) => this.toCaller(frame)), 'upstream');
    this.#idle?.begin();
  }

  /** Resolves once the upstream holds the connection no longer. */
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

  /** Bytes that the caller has not taken yet. */
  get unsentBytes(): number {
    return this.#caller.bufferedAmount;
  }

  #listen(side: WebSocket, take: (frame: Frame) => void, from: 'caller' | 'upstream'): void {
    // Bytes come as a Blob otherwise, which no `send` takes back.
    (side as { binaryType?: string }).binaryType = 'arraybuffer';
    side.addEventListener('message', ({ data }) => {
      // Messages of the upstream until it has closed still count, but are not forwarded.
      const isHeard = this.#end === null || (from === 'upstream' && this.#options.onUpstream);
      if (!isHeard) return;
      if (this.#end === null) this.#idle?.begin();
      take(data as Frame);
    });
    const onClose = (code: number, reason: string): void => {
      if (from === 'caller') return this.#closed(from, code, reason);
      this.#isClosing = true;
      this.#hear(() => this.#closed(from, code, reason));
    };
    side.addEventListener('close', ({ code, reason }) => onClose(code, reason));
    // What broke comes as a close besides.
    side.addEventListener('error', () => onClose(1006, ''));
    // Half open: each side hears how the other one has ended it, in place of an answer of the runtime's own.
    side.accept({ allowHalfOpen: true });
  }

  /** Has something taken that came of the upstream, behind the message that is looked into. */
  #hear(take: () => Promise<void> | void): void {
    if (this.#behind === null) this.#waitFor(take());
    else this.#behind.push(take);
  }

  #waitFor(looking: Promise<void> | void): void {
    if (looking === undefined) return;
    const behind: (() => Promise<void> | void)[] = [];
    this.#behind = behind;
    const goOn = (): void => {
      this.#behind = null;
      for (const next of behind) this.#hear(next);
    };
    looking.then(goOn, goOn);
  }

  #send(side: WebSocket, frame: Frame): void {
    if (this.#end !== null) return;
    try {
      side.send(frame);
    } catch {
      // It was closed meanwhile, and says so by itself.
      return;
    }
    this.#unseenBytes += typeof frame === 'string' ? frame.length : frame.byteLength;
    if (this.#unseenBytes >= LOOK_EVERY_BYTES) this.#look();
  }

  #look(): void {
    this.#unseenBytes = 0;
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

  /** Notes the end. Whatever comes of it, the upstream's connection ends soon. */
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

/** A code that nobody may send did not come by the rules, and cannot be passed on. */
function closeAnyhow(side: WebSocket): void {
  try {
    side.close(1002);
  } catch {
    // It has ended already.
  }
}
