import { whenQuiet, type Schedule } from '../../runtime/async.ts';
import { BoundWatch, type TimeBound } from './watched-pipe.ts';

/** Pipes a response body natively, and reads a copy of it behind. */

/**
 * Minimum and maximum bytes of a read. The runtime allocates as much again for each read until the next garbage
 * collection, so a read is no larger than necessary.
 */
const SMALL_BYTES = 1_024;
const LARGE_BYTES = 65_536;

/** Factor between two consecutive sizes of a read. */
const STEP = 4;

/**
 * One branch of a tee, read in pieces. The runtime buffers what passes on the other branch until it is read here. A
 * read returns immediately if bytes are available, and otherwise waits for the next ones.
 */
class TeeBranch {
  readonly #reader: ReadableStreamBYOBReader;
  #buffer = new ArrayBuffer(SMALL_BYTES);
  #bytes: number;
  #isReading = false;
  #hasMore = false;
  #hasEnded = false;

  /** @param passed bytes before the branch that count as read */
  constructor(branch: ReadableStream<Uint8Array>, passed = 0) {
    this.#bytes = passed;
    this.#reader = branch.getReader({ mode: 'byob' });
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isReading(): boolean {
    return this.#isReading;
  }

  /** Whether more buffered bytes may be available, because the last read was filled. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  /** Whether the body has ended or broken. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /**
   * Reads the next piece, which the caller must not keep. Returns null if the body has ended or broken. At least
   * `known` bytes are available.
   */
  async read(known = 0): Promise<Uint8Array | null> {
    const bytes = Math.min(known + SMALL_BYTES, LARGE_BYTES);
    if (bytes > this.#buffer.byteLength) this.#buffer = new ArrayBuffer(bytes);
    this.#isReading = true;
    try {
      const { done, value } = await this.#reader.read(new Uint8Array(this.#buffer));
      if (done) return this.#end();
      this.#bytes += value.length;
      const isFirst = !this.#hasMore;
      this.#hasMore = value.length === value.buffer.byteLength;
      this.#buffer = fitted(value, isFirst);
      return value;
    } catch {
      return this.#end();
    } finally {
      this.#isReading = false;
    }
  }

  #end(): null {
    this.#hasEnded = true;
    this.#hasMore = false;
    return null;
  }
}

/**
 * The buffer for the read after one that returned `value`: the same one, or one of a better size. Only the first read
 * of the available bytes shows that a smaller buffer would do.
 */
function fitted({ length, buffer }: Uint8Array<ArrayBuffer>, isFirst: boolean): ArrayBuffer {
  const { byteLength } = buffer;
  let bytes = byteLength;
  if (length === byteLength) bytes = Math.min(byteLength * STEP, LARGE_BYTES);
  else if (isFirst && length < byteLength / (2 * STEP)) {
    bytes = Math.max(byteLength / STEP, SMALL_BYTES);
  }
  return bytes === byteLength ? buffer : new ArrayBuffer(bytes);
}

/**
 * Minimum and maximum time between two checks. The runtime buffers the bytes that pass between checks, so the maximum
 * bounds that memory by the throughput of an isolate in this time.
 */
const CHECK_MS_MIN = 8;
const CHECK_MS_MAX = 500;

/** Largest factor by which the interval grows from one check to the next. */
const CHECK_GROWTH = 8;

/** Bytes that a check should find. If it finds more, the next check comes sooner. */
const CHECK_BYTES = 16_384;

/**
 * Number of checks within a silence limit. A silence that begins right after a check is noticed two checks later at the
 * earliest.
 */
const CHECKS_PER_BOUND = 8;

interface PipeObservation {
  readonly signal: AbortSignal;
  /** How long the upstream may send nothing. null means no limit. */
  readonly idle: TimeBound | null;
  /** How long the caller may read nothing of the bytes available to it. null means no limit. */
  readonly stalled: TimeBound | null;
  readonly after: Schedule;
  /** Receives the bytes that the upstream has sent, some time after they were passed on. Must not keep them. */
  readonly onSaid: (bytes: Uint8Array) => void;
  /**
   * Bytes already sent to the caller, which `taken` will return and `onSaid` has received. Absent if there are none.
   */
  readonly passed?: number;
}

/**
 * Pipes a body natively and checks periodically what has passed, so no JavaScript runs per chunk. Both ends are teed.
 * One branch shows what the upstream has sent. `taken`, a tee behind `writable`, shows what the caller has read. If the
 * caller has read less than was sent, the caller is stalled. Otherwise the upstream is silent.
 *
 * While the caller reads, both sides are alive, and a check reads only the caller's branch, because each wake-up costs
 * more than the read. The upstream's branch is read when it has grown large, or when the caller stops reading.
 *
 * The runtime must pump the tee behind `writable` to the caller. It then reads nothing more until the caller has read
 * everything available. The upstream's branch is read at most one piece ahead of the caller's, so that a slow client
 * slows down the upstream.
 *
 * Resolves when the last byte has been passed on and `onSaid` has received it. Rejects if the pipe broke or was
 * aborted, after `onSaid` has received everything that had arrived.
 */
export async function pipeObserved(
  body: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
  taken: ReadableStream<Uint8Array>,
  observation: PipeObservation,
): Promise<void> {
  const [passing, sent] = body.tee();
  const ofUpstream = new TeeBranch(sent, observation.passed);
  const observer = new Observer(ofUpstream, new TeeBranch(taken), observation);
  // If `onSaid` throws, so does `drain`, which is awaited below.
  observer.run().catch(() => {});
  try {
    await passing.pipeTo(writable, { signal: observation.signal });
    await observer.drain();
  } catch (error) {
    await Promise.race([observer.drain(), whenQuiet()]);
    throw error;
  } finally {
    observer.stop();
  }
}

class Observer {
  readonly #sent: TeeBranch;
  readonly #delivered: TeeBranch;
  readonly #observation: PipeObservation;
  readonly #idle: BoundWatch | null;
  readonly #stalled: BoundWatch | null;
  readonly #checkMsMax: number;
  #sentRead: Promise<void> = Promise.resolve();
  #endPause: () => void = () => {};
  #isOver = false;
  #isStopped = false;

  constructor(sent: TeeBranch, taken: TeeBranch, observation: PipeObservation) {
    const { idle, stalled } = observation;
    this.#sent = sent;
    this.#delivered = taken;
    this.#observation = observation;
    this.#idle = idle === null ? null : new BoundWatch(idle);
    this.#stalled = stalled === null ? null : new BoundWatch(stalled);
    const strictest = Math.min(idle?.afterMs ?? Infinity, stalled?.afterMs ?? Infinity);
    this.#checkMsMax = Math.max(1, Math.min(CHECK_MS_MAX, strictest / CHECKS_PER_BOUND));
  }

  /** Checks until the pipe ends. */
  async run(): Promise<void> {
    let pauseMs = CHECK_MS_MIN;
    while (!this.#isOver && !this.#delivered.hasEnded) {
      const before = this.#delivered.bytes;
      const pause = this.#pause(pauseMs);
      const reading = this.#readTaken();
      // The available bytes are read long before the pause ends.
      await Promise.race([reading, pause]);
      const isSilent = this.#delivered.isReading;
      await (isSilent ? Promise.all([reading, this.#readAhead()]) : this.#catchUp());
      const found = this.#delivered.bytes - before;
      pauseMs *= Math.min(CHECK_GROWTH, CHECK_BYTES / found);
      pauseMs = Math.min(Math.max(CHECK_MS_MIN, pauseMs), this.#checkMsMax);
      if (!isSilent && found <= CHECK_BYTES) await pause;
      else await this.#pauseAgain(pauseMs);
    }
  }

  /** Ends the checks, and reads what the upstream has sent since the last one. */
  async drain(): Promise<void> {
    this.#isOver = true;
    this.#endPause();
    await this.#sentRead;
    while (!this.#sent.hasEnded) await this.#readSent();
  }

  stop(): void {
    this.#isOver = true;
    this.#isStopped = true;
    this.#endPause();
    this.#idle?.stop();
    this.#stalled?.stop();
  }

  /** Reads everything available from the caller's branch. If there is nothing, waits for the next bytes. */
  async #readTaken(): Promise<void> {
    do {
      await this.#delivered.read();
      this.#watch();
    } while (!this.#isOver && this.#delivered.hasMore);
  }

  /** Catches up with the caller on the upstream's branch once it is far enough behind. */
  async #catchUp(): Promise<void> {
    if (this.#delivered.bytes - this.#sent.bytes < CHECK_BYTES) return;
    while (!this.#isOver && this.#sent.bytes < this.#delivered.bytes) await this.#readSent();
  }

  /** Reads one piece beyond the caller's position. There is none if the upstream is silent. */
  async #readAhead(): Promise<void> {
    const isCallers = (): boolean => this.#sent.bytes > this.#delivered.bytes;
    while (!this.#isOver && this.#delivered.isReading && !this.#sent.hasEnded && !isCallers()) {
      await this.#readSent();
    }
  }

  #readSent(): Promise<void> {
    this.#sentRead = this.#readSentPiece();
    return this.#sentRead;
  }

  async #readSentPiece(): Promise<void> {
    const pending = this.#sent.read(this.#delivered.bytes - this.#sent.bytes);
    this.#watch();
    const bytes = await pending;
    if (this.#isStopped) return;
    if (bytes !== null) this.#observation.onSaid(bytes);
    this.#watch();
  }

  #watch(): void {
    if (this.#isOver) return;
    const backlog = this.#sent.bytes - this.#delivered.bytes;
    if (this.#delivered.isReading && backlog > 0) this.#stalled?.begin();
    else this.#stalled?.end();
    if (this.#sent.isReading && backlog === 0) this.#idle?.begin();
    else this.#idle?.end();
  }

  #pauseAgain(ms: number): Promise<void> {
    this.#endPause();
    return this.#isOver ? Promise.resolve() : this.#pause(ms);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const callOff = this.#observation.after(ms, resolve);
      this.#endPause = () => {
        callOff();
        resolve();
      };
    });
  }
}
