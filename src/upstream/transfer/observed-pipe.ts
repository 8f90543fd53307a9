import type { Schedule } from '../../runtime/call-clock.ts';
import { whenQuiet } from '../../runtime/when-quiet.ts';
import { BoundWatch, type TimeBound } from './bound-watch.ts';
import { TeeBranch } from './tee-branch.ts';

/**
 * Time between two looks, at least and at most. The runtime keeps what passes between two of them, so the second
 * one bounds that by what goes through an isolate in so long.
 */
const LOOK_MS_MIN = 8;
const LOOK_MS_MAX = 500;

/** Factor by which looks get further apart at most, one after the other. */
const LOOK_GROWTH = 8;

/** Bytes that a look should find: where there are more, the next one comes sooner. */
const LOOK_BYTES = 16_384;

/**
 * Looks in the time that a side may be silent: after one that finds all there is, the next but one is the first to
 * learn of a silence.
 */
const LOOKS_PER_BOUND = 8;

/** How a body is observed. */
export interface PipeObservation {
  readonly signal: AbortSignal;
  /** How long the upstream may send nothing. Null: for ever. */
  readonly idle: TimeBound | null;
  /** How long the caller may take nothing of what is there for it. Null: for ever. */
  readonly stalled: TimeBound | null;
  readonly after: Schedule;
  /** Takes what the upstream says, some time after it went on. May not keep it. */
  readonly onSaid: (bytes: Uint8Array) => void;
  /** Bytes already sent to the caller, from `taken` and seen by `onSaid`. Absent if there are none. */
  readonly passed?: number;
}

/**
 * Pipes a body natively, and looks now and then at what has passed: no JavaScript runs for a chunk. Both ends are
 * teed: the one branch tells what the upstream has said, `taken` what went on to the caller, which has been
 * teed behind `writable`. A caller is behind where less was taken than said, and else it is the upstream that is silent.
 *
 * While something is taken both are alive, so a look reads that branch alone: to wake up costs more than what is read.
 * The other one is read when it has become much, or when nothing is taken any more.
 *
 * The tee behind must be pumped to the caller by the runtime, which then reads nothing more until the caller has
 * taken what there is. The branch of the upstream is read no further than one piece ahead of it, so that a slow client
 * slows the upstream down.
 *
 * Resolves when the last byte is on its way and `onSaid` has seen it; rejects when it broke or was aborted, and
 * `onSaid` has seen all that came until then.
 */
export async function pipeObserved(
  body: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
  taken: ReadableStream<Uint8Array>,
  observation: PipeObservation,
): Promise<void> {
  const [passing, said] = body.tee();
  const ofUpstream = new TeeBranch(said, observation.passed);
  const observer = new Observer(ofUpstream, new TeeBranch(taken), observation);
  // Where `onSaid` fails, hearing out the rest does too.
  observer.run().catch(() => {});
  try {
    await passing.pipeTo(writable, { signal: observation.signal });
    await observer.hearOut();
  } catch (error) {
    await Promise.race([observer.hearOut(), whenQuiet()]);
    throw error;
  } finally {
    observer.stop();
  }
}

class Observer {
  readonly #said: TeeBranch;
  readonly #taken: TeeBranch;
  readonly #observation: PipeObservation;
  readonly #idle: BoundWatch | null;
  readonly #stalled: BoundWatch | null;
  readonly #lookMsMax: number;
  #hearing: Promise<void> = Promise.resolve();
  #endRest: () => void = () => {};
  #isOver = false;
  #isStopped = false;

  constructor(said: TeeBranch, taken: TeeBranch, observation: PipeObservation) {
    const { idle, stalled } = observation;
    this.#said = said;
    this.#taken = taken;
    this.#observation = observation;
    this.#idle = idle === null ? null : new BoundWatch(idle);
    this.#stalled = stalled === null ? null : new BoundWatch(stalled);
    const strictest = Math.min(idle?.afterMs ?? Infinity, stalled?.afterMs ?? Infinity);
    this.#lookMsMax = Math.max(1, Math.min(LOOK_MS_MAX, strictest / LOOKS_PER_BOUND));
  }

  /** Looks until the pipe is over. */
  async run(): Promise<void> {
    let restMs = LOOK_MS_MIN;
    while (!this.#isOver && !this.#taken.hasEnded) {
      const before = this.#taken.bytes;
      const resting = this.#rest(restMs);
      const taking = this.#take();
      // What has passed is read long before the rest is over.
      await Promise.race([taking, resting]);
      const isSilent = this.#taken.isReading;
      await (isSilent ? Promise.all([taking, this.#hearOn()]) : this.#hearBehind());
      const found = this.#taken.bytes - before;
      restMs *= Math.min(LOOK_GROWTH, LOOK_BYTES / found);
      restMs = Math.min(Math.max(LOOK_MS_MIN, restMs), this.#lookMsMax);
      if (!isSilent && found <= LOOK_BYTES) await resting;
      else await this.#rewait(restMs);
    }
  }

  /** Ends the looks, and takes what the upstream has said since the last one. */
  async hearOut(): Promise<void> {
    this.#isOver = true;
    this.#endRest();
    await this.#hearing;
    while (!this.#said.hasEnded) await this.#hear();
  }

  stop(): void {
    this.#isOver = true;
    this.#isStopped = true;
    this.#endRest();
    this.#idle?.stop();
    this.#stalled?.stop();
  }

  /** Reads what the caller has taken since the last look, and else waits for the next of it. */
  async #take(): Promise<void> {
    do {
      await this.#taken.read();
      this.#watch();
    } while (!this.#isOver && this.#taken.hasMore);
  }

  /** Hears what the caller has taken already, where that has become much. */
  async #hearBehind(): Promise<void> {
    if (this.#taken.bytes - this.#said.bytes < LOOK_BYTES) return;
    while (!this.#isOver && this.#said.bytes < this.#taken.bytes) await this.#hear();
  }

  /** Hears one piece more than the caller has taken: there is none where it is the upstream that is silent. */
  async #hearOn(): Promise<void> {
    const isCallers = (): boolean => this.#said.bytes > this.#taken.bytes;
    while (!this.#isOver && this.#taken.isReading && !this.#said.hasEnded && !isCallers()) {
      await this.#hear();
    }
  }

  #hear(): Promise<void> {
    this.#hearing = this.#hearPiece();
    return this.#hearing;
  }

  async #hearPiece(): Promise<void> {
    const hearing = this.#said.read(this.#taken.bytes - this.#said.bytes);
    this.#watch();
    const bytes = await hearing;
    if (this.#isStopped) return;
    if (bytes !== null) this.#observation.onSaid(bytes);
    this.#watch();
  }

  #watch(): void {
    if (this.#isOver) return;
    const behind = this.#said.bytes - this.#taken.bytes;
    if (this.#taken.isReading && behind > 0) this.#stalled?.begin();
    else this.#stalled?.end();
    if (this.#said.isReading && behind === 0) this.#idle?.begin();
    else this.#idle?.end();
  }

  #rewait(ms: number): Promise<void> {
    this.#endRest();
    return this.#isOver ? Promise.resolve() : this.#rest(ms);
  }

  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const callOff = this.#observation.after(ms, resolve);
      this.#endRest = () => {
        callOff();
        resolve();
      };
    });
  }
}
