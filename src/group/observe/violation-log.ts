import { INVARIANTS, type Invariant, type Totals } from '../../core/parts/totals.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import { logEvent } from '../../runtime/log.ts';
import type { PoolIdentity } from '../definition.ts';

/** Minimum interval between log lines of one invariant. Violations in between are included in the next line. */
const SILENT_MS = 1_000;

type Violations = Totals['violations'];

/** Logs violated invariants of a pool, and raises warnings about them. */
export class ViolationLog {
  readonly #identity: PoolIdentity;
  readonly #warn: (violations: Violations, now: InstantMs) => void;
  readonly #reported = new Map<Invariant, { readonly count: number; readonly at: InstantMs }>();

  constructor(identity: PoolIdentity, warn: (violations: Violations, now: InstantMs) => void) {
    this.#identity = identity;
    this.#warn = warn;
  }

  note(violations: Violations, now: InstantMs): void {
    for (const invariant of INVARIANTS) {
      if (violations[invariant] > 0) this.#report(invariant, violations, now);
    }
  }

  #report(invariant: Invariant, violations: Violations, now: InstantMs): void {
    const count = violations[invariant];
    const reported = this.#reported.get(invariant);
    const before = reported?.count ?? 0;
    if (count <= before || (reported !== undefined && now < reported.at + SILENT_MS)) return;
    this.#reported.set(invariant, { count, at: now });
    logEvent('invariant_violated', { ...this.#identity, invariant, violations: count - before });
    this.#warn(violations, now);
  }
}
