import { StrictCounts } from './strict-counts.ts';
import { FailureScript } from './strict-failures.ts';
import { StrictRateLimiter } from './strict-rates.ts';
import type { StrictSettings } from './strict-settings.ts';

/** Settings and counters that tests on one server do not share. */
export class StrictScope {
  settings: StrictSettings;
  counts = new StrictCounts();
  limiter = new StrictRateLimiter();
  failures = new FailureScript();
  #silent: (() => void)[] = [];

  constructor(settings: StrictSettings) {
    this.settings = settings;
  }

  /** Sets the counters and what was used of the rate limits to zero; no failures are to come. */
  reset(): void {
    this.counts = new StrictCounts();
    this.limiter = new StrictRateLimiter();
    this.failures = new FailureScript();
  }

  untilResumed(): Promise<void> {
    return new Promise((resolve) => this.#silent.push(resolve));
  }

  resume(): void {
    const silent = this.#silent;
    this.#silent = [];
    for (const go of silent) go();
  }
}
