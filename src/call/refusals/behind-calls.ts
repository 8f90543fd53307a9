import type { Env } from '../../env.ts';
import { pause, type Background } from '../../runtime/async.ts';

/** A flush that is this late has ended with its request. */
const LOST_MS = 5_000;

/** Cloudflare ends work 30 s after the response. A flush that is due later is left to a later call. */
const DELAY_MS_MAX = 20_000;

interface FlushPace {
  /** Time from the first request for a flush to the flush, in milliseconds. */
  readonly firstMs: number;
  /** Minimum time between two flushes, in milliseconds. */
  readonly everyMs: number;
  readonly flush: (env: Env) => Promise<void>;
}

/** Flushes the counts of an isolate behind its calls, rarely enough to cost them nothing. */
export class BehindCalls {
  readonly #pace: FlushPace;
  #flushedAt = -Infinity;
  #pendingUntil = -Infinity;

  constructor(pace: FlushPace) {
    this.#pace = pace;
  }

  /** Schedules a flush, unless one is pending. */
  soon({ env, ctx }: { readonly env: Env; readonly ctx: Background }, now: number): void {
    if (now < this.#pendingUntil) return;
    const { firstMs, everyMs, flush } = this.#pace;
    const delayMs = Math.max(firstMs, this.#flushedAt + everyMs - now);
    if (delayMs > DELAY_MS_MAX) return;
    const dueAt = now + delayMs;
    this.#pendingUntil = dueAt + LOST_MS;
    const run = (): Promise<void> => {
      this.#pendingUntil = -Infinity;
      this.#flushedAt = dueAt;
      return flush(env);
    };
    ctx.waitUntil(pause(delayMs).then(run));
  }
}
