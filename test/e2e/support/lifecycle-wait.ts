import { setTimeout as delay } from 'node:timers/promises';

/** Epoch milliseconds with fractions: the clock by which the strict upstream notes its arrivals. */
export const clock = (): number => performance.timeOrigin + performance.now();

/**
 * For a test of a figure in time: what others do to the machine meanwhile is no defect, and a defect
 * shows in every try.
 */
export const FIGURE = { retry: 3 };

export interface LifecycleWaitUntilOptions {
  /**
   * More than a machine takes that is busy with other things. Less than a lease lasts without a renewal (45 s): one that is
   * never released must not pass as released. @default 40000
   */
  readonly withinMs?: number;
  /** Pause between two looks. @default 2 */
  readonly everyMs?: number;
}

/** Waits until the condition holds. `what` is the end of "It did not come about that …". */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  { withinMs = 40_000, everyMs = 2 }: LifecycleWaitUntilOptions = {},
): Promise<void> {
  const deadline = clock() + withinMs;
  while (!(await condition())) {
    if (clock() > deadline) {
      throw new Error(`It did not come about within ${withinMs} ms that ${what}.`);
    }
    await delay(everyMs);
  }
}

/** The middle value; of an even number of values the larger of the two. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
