import type { LimitsSeenStatus } from '../../contract/status.ts';
import {
  areSameLimits,
  limitsReported,
  type ReportedLimits,
} from '../../core/parts/reported-limits.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import type { LimitHint } from '../../core/words/signal.ts';

/** Maximum models whose limits a pool stores. The one reported longest ago is dropped first. */
const KEPT_MAX = 16;

/** Minimum interval between writes. Callers of two accounts would otherwise cause a write per call. */
const WRITTEN_EVERY_MS = 600_000;

/** Maximum length of a stored model name. */
const MODEL_MAX = 200;

interface LimitsMemory {
  recall(key: 'limits_seen'): string | null;
  remember(key: 'limits_seen', value: string): void;
}

interface SeenLimit {
  readonly upstream: string;
  readonly model: string | null;
  readonly limits: ReportedLimits;
  /** When these values were first reported. */
  readonly at: number;
}

/** The limits that upstreams reported in headers, by upstream and model. They survive a reset. */
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

  /** Records the limits in the headers of an answer. They are written only if they changed, and at a limited rate. */
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

  /** Returns the limits for the status, or nothing if none were reported. */
  status(): { readonly limits_seen?: readonly LimitsSeenStatus[] } {
    if (this.#seen.length === 0) return {};
    const limits_seen = this.#seen.map(({ at, ...one }) => ({
      ...one,
      at: new Date(at).toISOString(),
    }));
    return { limits_seen };
  }
}
