import type { Socket } from 'node:net';
import { MALFORMED_PATH } from '../../src/http/malformed.ts';
import { AnswerReader } from './answer-reader.ts';
import type { ClientConnection } from './client-connections.ts';
import { LateBytes } from './late-bytes.ts';
import { RequestScanner } from './request-scanner.ts';
import { connectToWorkerd, type WorkerdSocket } from './workerd-socket.ts';

/** How long a connection waits while workerd starts again. Most clients connect again after a reset. */
const TARGET_WAIT_MS = 10_000;

/**
 * How long a connection to workerd is used again after an answer. workerd closes it after 15 s (1.20261117.1), after 5 s
 * before that, and a request that crosses with that would be lost: until then a process may be held up for long.
 */
const TARGET_REST_MS = 2_000;

/** A body that takes longer than this, at less than this average rate, makes room for another client. */
const SLOW_BODY_S = 60;
const SLOW_BODY_BYTES_PER_S = 1_000;

/**
 * Bytes of requests that are read though workerd does not take them yet, of one client and of all: that a client has left
 * is seen behind all that it sent. A call that waits in a queue with a large body would wait on for nobody.
 */
const AHEAD_BYTES_MAX = 32 * 1_048_576;
const ALL_AHEAD_BYTES_MAX = 256 * 1_048_576;
let allAheadBytes = 0;

/** Bytes that are kept behind a request until its answer. Hardly any client sends the next request or a frame before it. */
const BEHIND_BYTES_MAX = 65_536;

/** Surroundings of a link. */
export interface LinkOptions {
  /** Header lines, each with its CR LF, that every request gets. */
  readonly added: string;
  /** Port of workerd; null: none serves now. */
  readonly targetPort: () => number | null;
  /** How long the client may be idle. */
  readonly idleMs: number;
  /** How long the head of a request may take to arrive, the first one from the connection on. */
  readonly headMs: number;
  readonly place: Pick<ClientConnection, 'busy' | 'rest'>;
  /** Called when the client is disconnected because a head took longer. */
  readonly onLateHead: () => void;
}

/**
 * Joins a client to workerd. workerd does not read from a client while it has nothing to write to it,
 * so an orderly close (FIN) of a client that waits in a queue, or on a silent stream, would go
 * unnoticed until the next write. A reset is noticed at once, so a FIN of the client becomes one. HTTP
 * clients do not close one half only, hence nobody loses an answer by it.
 *
 * A client that is idle outlives its connection to workerd, which closes what is idle for some seconds without a word
 * before: its next request goes over a new one. None goes out twice, and none over a connection that is about to close.
 *
 * Once a WebSocket is open, bytes pass both ways as they are, and neither side is read faster than the other takes. There
 * workerd reads all the time, so a FIN of the client passes as it is, behind all that came before it.
 */
export class ClientLink {
  readonly #client: Socket;
  readonly #options: LinkOptions;
  readonly #scanner: RequestScanner;
  readonly #answers = new AnswerReader();
  /** Null: there is none, because the client is idle or no workerd serves. */
  #target: WorkerdSocket | null = null;
  /** Bytes for a workerd that does not serve yet. */
  readonly #unsent: Buffer[] = [];
  #idleSince = performance.now();
  /** Start of the wait for a head: the connection for the first one, the first byte for others. Null: no head is expected. */
  #headSince: number | null = performance.now();
  #isBusy = false;
  /** When the body of a request began, and how much of it has arrived. Null: there is no body. */
  #bodySince: number | null = null;
  #bodyBytes = 0;
  #isWaiting = false;
  #isRefused = false;
  /** Bytes of a body after its answer, or of anything after the end of our side of the connection. Null: none are expected. */
  #late: LateBytes | null = null;
  /** Whether our side of the client's connection has ended. Bytes that arrive after it are discarded. */
  #isEnded = false;
  #aheadBytes = 0;
  /** Whether the client is to see that workerd closes its connection, however idle it is. */
  #isEnding = false;
  /** Bytes that came behind a request whose answer decides what becomes of them. Null: there is no such request. */
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
    client.on('end', () => this.#clientIsOver());
    // An error is a reset, or as good as one: it passes on as a reset.
    client.on('error', () => this.#leave());
    client.on('close', () => this.#leave());
    this.#lead();
  }

  /** Hears that a workerd serves again. */
  serves(): void {
    if (this.#isWaiting && !this.#client.destroyed) this.#lead();
  }

  /** Closes what has been idle for too long. */
  sweep(now: number): void {
    this.#checkLate(now);
    this.#checkHead(now);
    this.#checkBody(now);
    if (this.#isWaiting || !this.#isIdle) return;
    const restMs = now - this.#idleSince;
    if (restMs >= TARGET_REST_MS) this.#drop();
    const isOver = this.#isEnding ? this.#target === null : restMs >= this.#options.idleMs;
    // It has been told already that it is over, or will be, where it reads on.
    if (isOver && !this.#client.writableEnded) this.#client.destroySoon();
  }

  /** Makes room for another client. Its next request uses a new connection, as after any idle connection. */
  closeIdle(): void {
    this.#drop();
    this.#client.destroySoon();
  }

  /**
   * Ends our side of a connection whose client goes on for too long with the body of a request that is answered, and closes
   * it if the client still goes on then.
   */
  #checkLate(now: number): void {
    if (this.#late === null) return;
    // It still reads its answer.
    if (this.#client.writableLength > 0 && !this.#isWebSocket) this.#late.note(0);
    if (!this.#late.isOver(now)) return;
    if (this.#isEnded) this.#client.destroy();
    else this.#linger();
  }

  /** Disconnects a client whose request head takes too long. A client that has sent nothing gets no answer. */
  #checkHead(now: number): void {
    if (this.#headSince === null || this.#isRefused) return;
    // Nothing more is read from it, so it cannot continue.
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
      // Nothing more is read from it, so it cannot continue.
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

  /** Notes whether a head is expected and whether a request is in progress. */
  #noteUse(hasBegun: boolean): void {
    if (!this.#scanner.isInHead) this.#headSince = null;
    else if (hasBegun || this.#headSince === null) this.#headSince = performance.now();
    if (!hasBegun || this.#isBusy) return;
    this.#isBusy = true;
    this.#options.place.busy();
  }

  /** Notes that all requests have been answered. A body that continues after its answer keeps no place. */
  #noteRest(): void {
    this.#idleSince = performance.now();
    if (!this.#isBusy) return;
    this.#isBusy = false;
    this.#options.place.rest();
  }

  /** Ends the client with its connection to workerd, and at once if it has none. */
  end(): void {
    this.#isEnding = true;
    if (this.#isEnded) return;
    if (this.#late !== null) this.#linger();
    else if (this.#target === null && !this.#isWaiting) this.#client.destroySoon();
  }

  reset(): void {
    // A reset in the midst of an orderly end leaves a request behind in libuv, and the process spins instead of ending.
    if (this.#client.writableEnded) this.#client.destroy();
    else this.#client.resetAndDestroy();
  }

  get #isIdle(): boolean {
    return this.#scanner.isBetween && this.#answers.isAtRest && !this.#isRefused;
  }

  /** Leads to the workerd that serves, or waits for one. */
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
    target.on('end', () => this.#targetIsOver(target, () => this.#targetHasEnded()));
    target.on('error', () => this.#targetIsOver(target, () => this.#client.resetAndDestroy()));
    target.on('close', () => this.#targetIsOver(target, () => this.#client.destroySoon()));
    return target;
  }

  /** Passes on that a connection to workerd is over, unless the client can do without it. */
  #targetIsOver(target: WorkerdSocket, passOn: () => void): void {
    if (target !== this.#target) return;
    if (this.#isIdle && !this.#isEnding) this.#drop();
    else if (this.#answers.isOver) this.#linger();
    else passOn();
  }

  #targetHasEnded(): void {
    if (this.#isWebSocket) this.#client.end();
    else this.#linger();
  }

  /** Gives the connection to workerd up, over which nothing is under way. */
  #drop(): void {
    if (this.#target === null) return;
    this.#target.destroy();
    this.#target = null;
    this.#noteAhead();
    // It may have been held back for bytes that nobody wants any more.
    this.#client.resume();
  }

  /** Lets a client read the answer that ended its connection, whatever it still sends. */
  #linger(): void {
    this.#drop();
    this.#expectLate();
    this.#client.resume();
    this.#client.end();
  }

  /** Discards what the client sends from here on. Its connection keeps no place meanwhile. */
  #expectLate(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#late = new LateBytes();
    this.#noteRest();
  }

  /**
   * Reads on after an answer that came before the body of its request has ended. workerd closes that connection soon, so the
   * next request uses another one.
   */
  #skipBody(): void {
    this.#drop();
    this.#late = new LateBytes();
    this.#bodySince = null;
  }

  /** Discards the body of a request that is answered, and passes on what comes behind it. */
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

  #clientIsOver(): void {
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
   * Passes the requests of a client on to workerd, which answers 500 to some that are malformed, and writes
   * them to its log, keys included: they never get there.
   */
  #passRequests(data: Buffer): void {
    // Read to its end all the same: bytes that nobody reads would turn the answer into a reset.
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
    // In mid-body an answer may be under way already: the call is cut off.
    if (!isUnderWay) this.#refuse(malformed + path);
    else {
      this.#isRefused = true;
      this.#client.resetAndDestroy();
    }
  }

  /** Passes on what a WebSocket's client sends, once it is known to be one. Until then it is kept, as other bytes are. */
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

  /** Decides about what came behind a request for a WebSocket or a large body, if its answer is there. */
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
   * Asks the Worker to refuse what cannot be passed on. The answer comes after those to the requests before
   * it, and then workerd, which reads the end of the connection, closes it.
   */
  #refuse(what: string): void {
    const request = `GET ${MALFORMED_PATH}${what} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    this.#send(Buffer.from(request, 'latin1'));
    // The connection that is opened for it must not end before it is written.
    this.#isRefused = true;
    this.#target?.end();
  }

  /** False: enough for now. */
  #send(bytes: Buffer): boolean {
    if (this.#target === null && !this.#isWaiting) this.#lead();
    if (this.#target?.isBroken === true) return true;
    if (this.#target !== null) return this.#target.write(bytes);
    this.#unsent.push(bytes);
    return false;
  }

  /** Reads no more of a client until workerd has taken what is there, once that is much. */
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

  /** Passes answers on; false: enough for now. */
  #passAnswers(target: WorkerdSocket, bytes: Buffer): boolean {
    if (target !== this.#target) return true;
    const { isBetween } = this.#scanner;
    this.#answers.follow(bytes);
    if (this.#answers.isAtRest) this.#noteRest();
    const goesOn = this.#client.write(Buffer.from(bytes));
    if (this.#behind !== null) this.#readBehind(this.#behind);
    if (isBetween) return goesOn;
    if (this.#answers.isOver) this.#linger();
    else if (this.#answers.isAtRest) this.#skipBody();
    return goesOn;
  }
}
