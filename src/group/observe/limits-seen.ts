import type { LimitsSeenStatus } from '../../contract/status.ts';
import {
  areSameLimits,
  limitsReported,
  type ReportedLimits,
} from '../../core/parts/reported-limits.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import type { LimitHint } from '../../core/words/signal.ts';

/** Maximum models whose limits a pool keeps; the one that was heard of longest ago goes first. */
const KEPT_MAX = 16;

/** How long nothing is written again: callers of two accounts would have it written with every call. */
const WRITTEN_EVERY_MS = 600_000;

/** Maximum characters of a model's name that is kept. */
const MODEL_MAX = 200;

/** The row in which they are kept. */
interface LimitsMemory {
  recall(key: 'limits_seen'): string | null;
  remember(key: 'limits_seen', value: string): void;
}

interface SeenLimit {
  readonly upstream: string;
  readonly model: string | null;
  readonly limits: ReportedLimits;
  /** When they were first told so. */
  readonly at: number;
}

/** The limits that upstreams have told a pool's calls in headers, by upstream and model. A reset forgets none. */
export class LimitsSeen {
  readonly #store: LimitsMemory;
  #seen: readonly SeenLimit[];
  #writtenAt = -Infinity;
  #isWritten = true;

  constructor(store: LimitsMemory) {
    this.#store = store;
    const row = store.recall('limits_seen');
    this.#seen = row === null ? [] : (JSON.parse(row) as SeenLimit[]);
  }

  /** Notes what the headers of an answer told. Written only where it is news, and not too often. */
  note(
    { upstream, model: name }: { readonly upstream: string; readonly model: string | null },
    hints: readonly LimitHint[],
    now: InstantMs,
  ): void {
    if (hints.length === 0) return;
    const limits = limitsReported(hints);
    if (Object.keys(limits).length === 0) return;
    const model = name?.slice(0, MODEL_MAX) ?? null;
    const isOf = (one: SeenLimit): boolean => one.upstream === upstream && one.model === model;
    const known = this.#seen.find(isOf);
    if (known === undefined || !areSameLimits(known.limits, limits)) {
      const rest = this.#seen.filter((one) => !isOf(one));
      this.#seen = [...rest, { upstream, model, limits, at: now }].slice(-KEPT_MAX);
      this.#isWritten = false;
    }
    if (this.#isWritten || now < this.#writtenAt + WRITTEN_EVERY_MS) return;
    this.#store.remember('limits_seen', JSON.stringify(this.#seen));
    this.#writtenAt = now;
    this.#isWritten = true;
  }

  /** Tells them for the status; nothing where none were seen. */
  status(): { readonly limits_seen?: readonly LimitsSeenStatus[] } {
    if (this.#seen.length === 0) return {};
    const limits_seen = this.#seen.map(({ at, ...one }) => ({
      ...one,
      at: new Date(at).toISOString(),
    }));
    return { limits_seen };
  }
}
