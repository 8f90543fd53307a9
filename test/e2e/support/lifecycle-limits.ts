import type { StrictArrival } from '../../strict-upstream/counts.ts';
import { clock } from './lifecycle-wait.ts';

/** A grant of before the change may still be on its way to the upstream for so long after it. */
const ON_ITS_WAY_MS = 1_000;

interface LimitChange {
  readonly value: number;
  readonly askedAt: number;
  /** When the admin routes confirmed it. */
  confirmedAt: number;
}

/** The limits that were in force over time, to hold against the upstream's arrivals. */
export class LimitHistory {
  readonly #changes: LimitChange[] = [];

  constructor(value: number) {
    this.#changes.push({ value, askedAt: 0, confirmedAt: 0 });
  }

  /** Makes a change and notes when it can have begun to hold, and when it must. */
  async change(value: number, apply: () => Promise<void>): Promise<void> {
    const change = { value, askedAt: clock(), confirmedAt: Infinity };
    this.#changes.push(change);
    await apply();
    change.confirmedAt = clock();
  }

  /** The largest limit by which a call that arrives at `at` may have been let through. */
  allowedAt(at: number): number {
    const values = this.#changes
      .filter(({ askedAt }, index) => {
        const endsAt = this.#changes[index + 1]?.confirmedAt ?? Infinity;
        return askedAt <= at && at <= endsAt + ON_ITS_WAY_MS;
      })
      .map(({ value }) => value);
    return Math.max(...values);
  }
}

/** A call that arrived while more calls were in flight than any limit in force allows. */
export interface Excess {
  readonly label: string | null;
  readonly inFlight: number;
  readonly allowed: number;
}

/**
 * Every arrival that broke the limit. Calls that were let through earlier, by a larger limit, count as in
 * flight until they end: while they are too many, nobody else may arrive.
 */
export function excesses(arrivals: readonly StrictArrival[], limits: LimitHistory): Excess[] {
  const found: Excess[] = [];
  let open: StrictArrival[] = [];
  for (const arrival of arrivals.toSorted((a, b) => a.at - b.at)) {
    open = open.filter(({ endedAt }) => endedAt === null || endedAt > arrival.at);
    open.push(arrival);
    const allowed = limits.allowedAt(arrival.at);
    if (open.length > allowed) {
      found.push({ label: arrival.label, inFlight: open.length, allowed });
    }
  }
  return found;
}
