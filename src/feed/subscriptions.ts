import type { Env } from '../env.ts';
import type { WatchSpan } from '../contract/rpc/feed-rpc.ts';
import type { PoolStatus } from '../contract/status.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';
import { steadyClock } from '../runtime/async.ts';
import { askPools, forgetIdle, readAwake, readUnasked, type PoolReply } from '../overview/pools.ts';
import type { Picture } from './picture.ts';

/** Both ends of the feed: the pools that report, and the dashboards that read. */

/** How long a pool pushes its changes before it must be asked again. */
const WATCH_MS = 600_000;

/**
 * A pool used within `LATELY_MS` is asked again every `ASK_BUSY_EVERY_MS`, because some of its figures fall with time
 * alone.
 */
const LATELY_MS = 360_000;
const ASK_BUSY_EVERY_MS = 20_000;

/** Interval for idle pools. Waking them more often than their watch needs would cost more. */
const ASK_IDLE_EVERY_MS = 240_000;

/** Maximum pushes per second of all pools together, because the feed object also has other work. */
const PUSHES_PER_S = 250;

/**
 * Asks pools in use to push their changes, and asks again in time. Resting pools are not woken: the directory stores
 * their state, and asks them to push when they come into use.
 */
export class PoolWatch {
  readonly #env: Env;
  readonly #isViewed: (group: string) => boolean;
  /** When each pool was last asked and answered. A pool that did not answer is asked at the next opportunity. */
  readonly #askedAt = new Map<string, number>();
  /** When the resting pools were last read, and at which version: limits and switches apply to them too. */
  #restingRead = { at: -Infinity, version: -1 };

  constructor(env: Env, isViewed: (group: string) => boolean) {
    this.#env = env;
    this.#isViewed = isViewed;
  }

  /** Asks the pools in use that are new, did not answer, or were not asked for long. Reads the state of the others. */
  async askDue(picture: Picture): Promise<void> {
    const now = steadyClock.now();
    const awake = await readAwake(this.#env, spanOf(picture, now));
    const isAwake = (key: string) => awake === null || awake.has(key);
    for (const key of this.#askedAt.keys()) {
      if (!picture.pools.has(key) || !isAwake(key)) this.#askedAt.delete(key);
    }
    const names = new Set([...picture.pools.values()].map((pool) => pool.group));
    const busy = new Set(
      picture
        .statuses([...names], now)
        .filter(isBusyLately)
        .map(keyOf),
    );
    const due = [...picture.pools].filter(([key]) => {
      if (!isAwake(key)) return false;
      const everyMs = busy.has(key) ? ASK_BUSY_EVERY_MS : ASK_IDLE_EVERY_MS;
      return now - (this.#askedAt.get(key) ?? -Infinity) >= everyMs;
    });
    const replies = await this.ask(
      picture,
      due.map(([, pool]) => pool),
    );
    const resting = [...picture.pools].flatMap(([key, pool]) => (isAwake(key) ? [] : pool));
    const read = await this.#readResting(picture, resting);
    await forgetIdle(this.#env, picture.directory, [...replies, ...read]);
  }

  /** Reads the state of resting pools if one is new, the configuration changed, or time may have changed figures. */
  async #readResting(
    picture: Picture,
    pools: readonly PlacedPool[],
  ): Promise<PoolReply<PoolStatus>[]> {
    const now = steadyClock.now();
    const { version } = picture.directory;
    const isOld =
      version !== this.#restingRead.version || now - this.#restingRead.at >= ASK_IDLE_EVERY_MS;
    if (pools.length === 0 || (!isOld && pools.every((pool) => picture.hasReport(pool)))) return [];
    this.#restingRead = { at: now, version };
    const known = await readUnasked(this.#env, picture.directory, pools);
    return [...known].flatMap(([pool, { status }]) => {
      // The pool came into use meanwhile.
      if (picture.hasReport(pool, now)) return [];
      const at = status.as_of === undefined ? 0 : Date.parse(status.as_of);
      picture.note(
        { pool, answer: { at, configVersion: version, status, detail: null } },
        steadyClock.now(),
      );
      return [{ pool, answer: status }];
    });
  }

  /** Asks pools, and applies each report to the picture as it arrives. */
  async ask(picture: Picture, pools: readonly PlacedPool[]): Promise<PoolReply<PoolStatus>[]> {
    const { config } = picture.directory;
    const replies = await askPools(this.#env, config, pools, async (stub, pool) => {
      const key = poolKey(pool);
      const now = steadyClock.now();
      const isDetailed = this.#isViewed(pool.group);
      const answer = await stub.watch({ key, ...spanOf(picture, now), isDetailed });
      this.#askedAt.set(key, now);
      picture.note({ pool, answer }, steadyClock.now());
      return answer.status;
    });
    for (const one of replies) {
      if ('answer' in one) continue;
      this.#askedAt.delete(poolKey(one.pool));
      picture.note(one, steadyClock.now());
    }
    return replies;
  }
}

function spanOf(picture: Picture, now: number): WatchSpan {
  const everyMs = Math.ceil(picture.pools.size / PUSHES_PER_S) * 1_000;
  return { untilAt: now + WATCH_MS, everyMs };
}

function isBusyLately(one: PoolReply<PoolStatus>): boolean {
  return 'answer' in one && one.answer.idle_ms < LATELY_MS;
}

function keyOf({ pool }: PoolReply<PoolStatus>): string {
  return poolKey(pool);
}

/** Maximum backlog of a reader, in events and bytes. A reader beyond it has left or cannot follow. */
const WAITING_MAX = 64;
const WAITING_BYTES_MAX = 4 * 1_048_576;

/**
 * One open stream. Events are buffered until the reader takes them, so a slow reader delays no other. A reader that
 * exceeds the buffer is dropped, and reconnects automatically to a new snapshot.
 */
export class Reader {
  /** The group whose leases and waiters it receives, or null for none. */
  readonly group: string | null;
  /** When the stream ends, so that the reader reconnects. */
  readonly endsAt: number;
  readonly body: ReadableStream;
  /** Whether it has received the state that later changes build on. */
  isWelcomed = false;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #onEnd: (reader: Reader) => void;
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  #hasEnded = false;

  constructor(group: string | null, endsAt: number, onEnd: (reader: Reader) => void) {
    this.group = group;
    this.endsAt = endsAt;
    this.#onEnd = onEnd;
    // A stream implemented in JavaScript is not reliably notified when its reader leaves.
    const { readable, writable } = new IdentityTransformStream();
    this.body = readable;
    this.#writer = writable.getWriter();
    this.#writer.closed.catch(() => this.end());
  }

  /** Whether an event has been sent that the reader has not taken yet. */
  get isBehind(): boolean {
    return this.#isWriting;
  }

  send(bytes: Uint8Array): void {
    if (this.#hasEnded) return;
    if (this.#waiting.length >= WAITING_MAX || this.#waitingBytes > WAITING_BYTES_MAX) {
      this.end();
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.byteLength;
    if (!this.#isWriting) this.#write().catch(() => this.end());
  }

  /** Closes the stream after a final event. A stream whose reader is behind is aborted instead. */
  endWell(last: Uint8Array): void {
    if (this.#hasEnded || this.isBehind) {
      this.end();
      return;
    }
    this.#hasEnded = true;
    this.#writer
      .write(last)
      .then(() => this.#writer.close())
      .catch(() => {});
    this.#onEnd(this);
  }

  /** Drops the reader and aborts its stream. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#writer.abort(new Error('the stream has ended')).catch(() => {});
    this.#onEnd(this);
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.#waitingBytes -= next.byteLength;
      await this.#writer.write(next);
    }
    this.#isWriting = false;
  }
}
