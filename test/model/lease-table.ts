import type { Effect } from '../../src/core/events.ts';
import type { LeaseRow } from '../../src/core/state.ts';
import type { Lease } from '../../src/core/state.ts';
import { rowOf } from '../../src/core/recover.ts';

/** A write that nobody waits for may take this long. */
const WRITE_DELAY_MS = 50;

/**
 * The rows of the leases, as the shell keeps them: a step with a grant is written at once, together with
 * all that was noted before; everything else within a moment, and a reset in between may lose it.
 */
export class LeaseTable {
  readonly #rows = new Map<string, LeaseRow>();
  readonly #noted = new Map<string, Lease | null>();
  #writeAt = Infinity;

  /** Takes the effects of one step in. */
  note(effects: readonly Effect[], now: number): void {
    for (const effect of effects) {
      if (effect.kind === 'save') this.#noted.set(effect.lease.id, effect.lease);
      if (effect.kind === 'drop') this.#noted.set(effect.leaseId, null);
    }
    if (this.#noted.size === 0) return;
    this.#writeAt = Math.min(this.#writeAt, now + WRITE_DELAY_MS);
    if (effects.some(({ kind }) => kind === 'grant')) this.write();
  }

  /** Tells the time; writes what has waited long enough. */
  advanceTo(now: number): void {
    if (now >= this.#writeAt) this.write();
  }

  /** Whether everything noted is written. */
  get isWritten(): boolean {
    return this.#noted.size === 0;
  }

  write(): void {
    for (const [id, lease] of this.#noted) {
      if (lease === null) this.#rows.delete(id);
      else this.#rows.set(id, rowOf(lease));
    }
    this.lose();
  }

  /** Forgets what was noted and not written. */
  lose(): void {
    this.#noted.clear();
    this.#writeAt = Infinity;
  }

  rows(): LeaseRow[] {
    return [...this.#rows.values()];
  }
}
