import type { PeriodCosts, ReportedCosts } from '../../contract/rpc/costs-rpc.ts';
import type { Controls } from '../../core/controls.ts';
import { joinCosts, totalOf, type DayCosts } from '../../core/parts/costs.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import { dateOf, daysOf, periodsAt } from '../../history/periods.ts';
import type { CostRows } from '../cost-rows.ts';

/** Reads a pool's costs: past days from their rows, others from memory. */
export class CostView {
  readonly #controls: Pick<Controls, 'costs'>;
  readonly #rows: CostRows;

  constructor(controls: Pick<Controls, 'costs'>, rows: CostRows) {
    this.#controls = controls;
    this.#rows = rows;
  }

  /** Returns the costs of a day or month by its name. An invalid name has no costs. */
  of(period: string): PeriodCosts {
    const range = daysOf(period);
    if (range === null) return { lines: [], rest: null, days: [] };
    return sumUp(this.#between(range.from, range.to));
  }

  /**
   * Returns the costs for the directory to store, as JSON: the current and the previous day and month. Returns null if
   * the pool never had any.
   */
  report(now: InstantMs): string | null {
    if (this.#controls.costs.today === null) return null;
    const all = Object.values(periodsAt(now)).map((period) => [period, this.of(period)] as const);
    const report: ReportedCosts = Object.fromEntries(all.filter(([, { days }]) => days.length > 0));
    return JSON.stringify(report);
  }

  #between(from: number, to: number): DayCosts[] {
    const { closed, today } = this.#controls.costs;
    const unwritten = today === null ? closed : [...closed, today];
    return [
      ...this.#rows.read(from, to),
      ...unwritten.filter(({ day }) => day >= from && day <= to),
    ];
  }
}

function sumUp(days: readonly DayCosts[]): PeriodCosts {
  const sums = days.map((each) => ({ date: dateOf(each.day), ...totalOf(each) }));
  return { ...joinCosts(days), days: sums };
}
