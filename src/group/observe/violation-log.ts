import { INVARIANTS, type Invariant, type Totals } from '../../core/parts/totals.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import { logEvent } from '../../runtime/log.ts';
import type { PoolIdentity } from '../definition.ts';

/** How long an invariant is not told again. What breaks it meanwhile is told with the next line. */
const SILENT_MS = 1_000;

type Violations = Totals['violations'];

/** Tells the log of invariants that a pool has broken, and whoever warns of it. */
export class ViolationLog {
  readonly #identity: PoolIdentity;
  readonly #warn: (violations: Violations, now: InstantMs) => void;
  readonly #reported = new Map<Invariant, { readonly count: number; readonly at: InstantMs }>();

  constructor(identity: PoolIdentity, warn: (violations: Violations, now: InstantMs) => void) {
    this.#identity = identity;
    this.#warn = warn;
  }

  /** Looks at the counts after an event. */
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
