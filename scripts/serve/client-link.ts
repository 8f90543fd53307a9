import type { Socket } from 'node:net';
import { MALFORMED_PATH } from '../../src/http/malformed.ts';
import { AnswerReader } from './answer-reader.ts';
import type { ClientConnection } from './client-connections.ts';
import { LateBytes } from './late-bytes.ts';
import { RequestScanner } from './request-scanner.ts';
import { connectToWorkerd, type WorkerdSocket } from './workerd-socket.ts';

/** How long a connection waits while workerd restarts. Then it is reset, after which most clients reconnect. */
const TARGET_WAIT_MS = 10_000;

/**
 * How long a connection to workerd is reused after a response. workerd closes it after 15 s since 1.20261117.1, and
 * after 5 s before. A request that crosses with the close would be lost, and a process may be delayed for seconds.
 */
const TARGET_REST_MS = 2_000;

/** A body that takes longer than this, at a lower average rate, makes room for another client. */
const SLOW_BODY_S = 60;
const SLOW_BODY_BYTES_PER_S = 1_000;

/**
 * Maximum bytes of requests that are read before workerd accepts them, for one client and for all. A disconnect is
 * visible only after all bytes of the client have been read. Otherwise a queued call with a large body would wait
 * without a client.
 */
const AHEAD_BYTES_MAX = 32 * 1_048_576;
const ALL_AHEAD_BYTES_MAX = 256 * 1_048_576;
let allAheadBytes = 0;

/**
 * Maximum bytes that are kept after a request until its response. Few clients send a frame or another request before
 * it.
 */
const BEHIND_BYTES_MAX = 65_536;

export interface LinkOptions {
  /** Header lines, each with its CR LF, that are added to every request. */
  readonly added: string;
  /** Port of workerd. null while it restarts. */
  readonly targetPort: () => number | null;
  readonly idleMs: number;
  /** Timeout for the head of a request. For the first request it starts with the connection. */
  readonly headMs: number;
  readonly place: Pick<ClientConnection, 'busy' | 'rest'>;
  /** Called when the client is disconnected because a head took longer. */
  readonly onLateHead: () => void;
}

/**
 * Connects a client to workerd. workerd does not read from a client while it has nothing to write, so it would notice
 * an orderly close (FIN) of a queued call or a silent stream only at the next write. It notices a reset immediately. A
 * FIN of the client therefore becomes a reset. HTTP clients do not close only one half, so no client loses a response.
 *
 * An idle client outlives its connection to workerd, which closes idle connections after a few seconds without notice.
 * The next request uses a new connection. No request is sent twice, and none over a connection that is about to close.
 *
 * Once a WebSocket is open, bytes pass in both directions unchanged, and neither side is read faster than the other
 * accepts. workerd reads from WebSockets continuously, so a FIN of the client is forwarded after all earlier bytes.
 */
export class ClientLink {
  readonly #client: Socket;
  readonly #options: LinkOptions;
  readonly #scanner: RequestScanner;
  readonly #answers = new AnswerReader();
  /** null if the client is idle or workerd restarts. */
  #target: WorkerdSocket | null = null;
  /** Bytes to send once workerd serves again. */
  readonly #unsent: Buffer[] = [];
  #idleSince = performance.now();
  /**
   * Start of the wait for a head: the connection for the first, the first byte for others. null if no head is expected.
   */
  #headSince: number | null = performance.now();
  #isBusy = false;
  /** When the body of a request began, and how much of it has arrived. null if there is no body. */
  #bodySince: number | null = null;
  #bodyBytes = 0;
  #isWaiting = false;
  #isRefused = false;
  /** Bytes of a body after its response, or after our side of the connection has ended. null if none are expected. */
  #late: LateBytes | null = null;
  /** Whether our side of the client's connection has ended. Bytes that arrive after it are discarded. */
  #isEnded = false;
  #aheadBytes = 0;
  /** Whether a close by workerd is forwarded to the client even if the client is idle. */
  #isEnding = false;
  /** Bytes after a request whose response determines how they are handled. null if there is no such request. */
  #behind: Buffer | null = null;
  #isWebSocket = false;

  constructor(client: Socket, options: LinkOptions) {
    this.#client = client;
    this.#options = options;
    this.#scanner = new RequestScanner(options.added);
    client.setNoDelay(true);
    client.on('data', (data: Buffer) => this.#passRequests(data));
    client.on('drain', () => this.#target?.resume());
    client.on('finish', () => this.#expectLate());
    client.on('end', () => this.#clientHasEnded());
    // An error is a reset or equivalent to one, so it is forwarded as a reset.
    client.on('error', () => this.#leave());
    client.on('close', () => this.#leave());
    this.#lead();
  }

  serves(): void {
    if (this.#isWaiting && !this.#client.destroyed) this.#lead();
  }

  /** Closes connections that have been idle for too long. */
  sweep(now: number): void {
    this.#checkLate(now);
    this.#checkHead(now);
    this.#checkBody(now);
    if (this.#isWaiting || !this.#isIdle) return;
    const restMs = now - this.#idleSince;
    if (restMs >= TARGET_REST_MS) this.#drop();
    const isOver = this.#isEnding ? this.#target === null : restMs >= this.#options.idleMs;
    // Otherwise the end of the connection has already been written.
    if (isOver && !this.#client.writableEnded) this.#client.destroySoon();
  }

  /** Makes room for another client. Its next request uses a new connection, as after any idle connection. */
  closeIdle(): void {
    this.#drop();
    this.#client.destroySoon();
  }

  /**
   * Ends our side of a connection whose client sends the body of an answered request for too long. If the client still
   * continues, closes the connection.
   */
  #checkLate(now: number): void {
    if (this.#late === null) return;
    // The client is still reading its response.
    if (this.#client.writableLength > 0 && !this.#isWebSocket) this.#late.note(0);
    if (!this.#late.isOver(now)) return;
    if (this.#isEnded) this.#client.destroy();
    else this.#linger();
  }

  /** Disconnects a client whose request head takes too long. A client that has sent nothing gets no response. */
  #checkHead(now: number): void {
    if (this.#headSince === null || this.#isRefused) return;
    // The client is not being read, so it cannot continue.
    if (this.#isWaiting || this.#client.isPaused()) this.#headSince = now;
    if (now - this.#headSince < this.#options.headMs) return;
    this.#headSince = null;
    this.#options.onLateHead();
    if (!this.#answers.isAtRest) this.#client.resetAndDestroy();
    else if (!this.#scanner.isInHead) this.closeIdle();
    else this.#refuse('late');
  }

  /**
   * Lets a request whose body arrives too slowly make room for another client. Otherwise it continues, because only
   * the groups of a call know how slow it may be.
   */
  #checkBody(now: number): void {
    if (this.#bodySince === null || !this.#isBusy) return;
    if (this.#isWaiting || this.#client.isPaused()) {
      // The client is not being read, so it cannot continue.
      [this.#bodySince, this.#bodyBytes] = [now, 0];
      return;
    }
    const tookS = (now - this.#bodySince) / 1_000;
    if (tookS < SLOW_BODY_S || this.#bodyBytes >= tookS * SLOW_BODY_BYTES_PER_S) return;
    this.#isBusy = false;
    this.#options.place.rest();
  }

  #noteBody(bytes: number, hasBegun: boolean): void {
    if (this.#scanner.isBetween) {
      this.#bodySince = null;
      return;
    }
    if (hasBegun || this.#bodySince === null) {
      [this.#bodySince, this.#bodyBytes] = [performance.now(), 0];
    }
    this.#bodyBytes += bytes;
  }

  /** Records whether a head is expected and whether a request is in progress. */
  #noteUse(hasBegun: boolean): void {
    if (!this.#scanner.isInHead) this.#headSince = null;
    else if (hasBegun || this.#headSince === null) this.#headSince = performance.now();
    if (!hasBegun || this.#isBusy) return;
    this.#isBusy = true;
    this.#options.place.busy();
  }

  /** Records that all requests have been answered. A body that continues after its response holds no place. */
  #noteRest(): void {
    this.#idleSince = performance.now();
    if (!this.#isBusy) return;
    this.#isBusy = false;
    this.#options.place.rest();
  }

  /** Ends the client together with its connection to workerd, or immediately if there is none. */
  end(): void {
    this.#isEnding = true;
    if (this.#isEnded) return;
    if (this.#late !== null) this.#linger();
    else if (this.#target === null && !this.#isWaiting) this.#client.destroySoon();
  }

  reset(): void {
    // A reset during an orderly end leaves a pending request in libuv, and the process would spin instead of exiting.
    if (this.#client.writableEnded) this.#client.destroy();
    else this.#client.resetAndDestroy();
  }

  get #isIdle(): boolean {
    return this.#scanner.isBetween && this.#answers.isAtRest && !this.#isRefused;
  }

  /** Connects to workerd, or waits for its restart. */
  #lead(): void {
    const port = this.#options.targetPort();
    if (port === null) {
      this.#wait();
      return;
    }
    if (this.#isWaiting) {
      this.#isWaiting = false;
      this.#client.setTimeout(0);
      this.#client.resume();
    }
    const target = this.#connect(port);
    this.#target = target;
    for (const bytes of this.#unsent.splice(0)) target.write(bytes);
    if (this.#isRefused) target.end();
  }

  #wait(): void {
    const client = this.#client;
    this.#isWaiting = true;
    client.pause();
    client.setTimeout(TARGET_WAIT_MS, () => client.resetAndDestroy());
  }

  #connect(port: number): WorkerdSocket {
    const target = connectToWorkerd(port, (socket, bytes) => this.#passAnswers(socket, bytes));
    target.on('drain', () => {
      this.#noteAhead();
      this.#client.resume();
    });
    target.on('end', () => this.#onTargetGone(target, () => this.#targetHasEnded()));
    target.on('error', () => this.#onTargetGone(target, () => this.#client.resetAndDestroy()));
    target.on('close', () => this.#onTargetGone(target, () => this.#client.destroySoon()));
    return target;
  }

  /** Forwards the end of a connection to workerd, unless the client is idle. */
  #onTargetGone(target: WorkerdSocket, passOn: () => void): void {
    if (target !== this.#target) return;
    if (this.#isIdle && !this.#isEnding) this.#drop();
    else if (this.#answers.isOver) this.#linger();
    else passOn();
  }

  #targetHasEnded(): void {
    if (this.#isWebSocket) this.#client.end();
    else this.#linger();
  }

  /** Closes the connection to workerd, which has no request in progress. */
  #drop(): void {
    if (this.#target === null) return;
    this.#target.destroy();
    this.#target = null;
    this.#noteAhead();
    // The client may have been paused because of bytes that are no longer needed.
    this.#client.resume();
  }

  /** Ends our side after the last response. The client can still read it, and its further bytes are discarded. */
  #linger(): void {
    this.#drop();
    this.#expectLate();
    this.#client.resume();
    this.#client.end();
  }

  /** Discards further bytes of the client. Its connection holds no place meanwhile. */
  #expectLate(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#late = new LateBytes();
    this.#noteRest();
  }

  /**
   * Continues to read after a response that arrived before the end of its request's body. workerd closes that
   * connection soon, so the next request uses another one.
   */
  #skipBody(): void {
    this.#drop();
    this.#late = new LateBytes();
    this.#bodySince = null;
  }

  /** Discards the body of an answered request and forwards the bytes after it. */
  #passBehindBody(data: Buffer): void {
    const rest = this.#scanner.skipBody(data);
    if (rest === null) return;
    if (rest === 'malformed') {
      this.#linger();
      return;
    }
    this.#late = null;
    this.#idleSince = performance.now();
    if (rest.length > 0) this.#passRequests(rest);
  }

  #clientHasEnded(): void {
    if (this.#isWebSocket && this.#target !== null) {
      this.#target.end();
      this.#late ??= new LateBytes();
    } else this.#leave();
  }

  #leave(): void {
    this.#target?.resetAndDestroy();
    this.#target = null;
    this.#noteAhead();
    this.#client.destroySoon();
  }

  /**
   * Forwards the requests of a client to workerd. Malformed requests are not forwarded, because workerd returns 500 for
   * some and writes them to its log, including keys.
   */
  #passRequests(data: Buffer): void {
    // Further bytes are still read, because unread bytes would turn the response into a reset.
    this.#late?.note(data.length);
    if (this.#isRefused || this.#isEnded) return;
    if (this.#isWebSocket || this.#behind !== null) {
      this.#passFrames(data);
      return;
    }
    if (this.#late !== null) {
      this.#passBehindBody(data);
      return;
    }
    if (this.#isIdle && performance.now() - this.#idleSince >= TARGET_REST_MS) this.#drop();
    const { bytes, malformed, path, isUnderWay, heads, behind } = this.#scanner.scan(data);
    for (const head of heads) this.#answers.expect(head);
    this.#behind = behind;
    this.#noteUse(heads.length > 0);
    this.#noteBody(data.length, heads.length > 0);
    if (bytes.length > 0 && !this.#send(bytes)) this.#holdBack();
    if (malformed === null) return;
    this.#client.resume();
    // A malformed body is cut, because its response may already be in progress.
    if (!isUnderWay) this.#refuse(malformed + path);
    else {
      this.#isRefused = true;
      this.#client.resetAndDestroy();
    }
  }

  /** Forwards the frames of a WebSocket client. Until the response shows whether it is one, the bytes are kept. */
  #passFrames(data: Buffer): void {
    if (this.#behind === null) {
      if (!this.#send(data)) this.#client.pause();
      return;
    }
    this.#behind = Buffer.concat([this.#behind, data]);
    if (this.#behind.length <= BEHIND_BYTES_MAX) return;
    if (this.#scanner.hasLargeBody) this.#client.pause();
    else this.#client.resetAndDestroy();
  }

  /** Handles the bytes after a WebSocket request or a large body, once its response has arrived. */
  #readBehind(behind: Buffer): void {
    const { isSwitched, isAtRest, isRefusal } = this.#answers;
    if (!isSwitched && !isAtRest) return;
    this.#isWebSocket = isSwitched;
    this.#behind = null;
    if (isRefusal && this.#scanner.hasLargeBody) this.#drop();
    this.#client.resume();
    if (behind.length > 0) this.#passRequests(behind);
  }

  /**
   * Requests an error response from the Worker for a request that cannot be forwarded. It arrives after the responses
   * to earlier requests. workerd then reads the end of the connection and closes it.
   */
  #refuse(what: string): void {
    const request = `GET ${MALFORMED_PATH}${what} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    this.#send(Buffer.from(request, 'latin1'));
    // A connection that was opened for this request must not end before the request is written.
    this.#isRefused = true;
    this.#target?.end();
  }

  /** Returns false if workerd should receive no more for now. */
  #send(bytes: Buffer): boolean {
    if (this.#target === null && !this.#isWaiting) this.#lead();
    if (this.#target?.isBroken === true) return true;
    if (this.#target !== null) return this.#target.write(bytes);
    this.#unsent.push(bytes);
    return false;
  }

  /** Pauses the client if too many of its bytes wait for workerd. */
  #holdBack(): void {
    this.#noteAhead();
    const isMuch = this.#aheadBytes > AHEAD_BYTES_MAX || allAheadBytes > ALL_AHEAD_BYTES_MAX;
    if (isMuch || this.#target === null) this.#client.pause();
  }

  #noteAhead(): void {
    const bytes = this.#target?.writableLength ?? 0;
    allAheadBytes += bytes - this.#aheadBytes;
    this.#aheadBytes = bytes;
  }

  /** Forwards response bytes. Returns false if the client should receive no more for now. */
  #passAnswers(target: WorkerdSocket, bytes: Buffer): boolean {
    if (target !== this.#target) return true;
    const { isBetween } = this.#scanner;
    this.#answers.follow(bytes);
    if (this.#answers.isAtRest) this.#noteRest();
    const hasRoom = this.#client.write(Buffer.from(bytes));
    if (this.#behind !== null) this.#readBehind(this.#behind);
    if (isBetween) return hasRoom;
    if (this.#answers.isOver) this.#linger();
    else if (this.#answers.isAtRest) this.#skipBody();
    return hasRoom;
  }
}
