import { StrictCounts } from './strict-counts.ts';
import type { StrictSettings } from './strict-settings.ts';

/** Settings and counters that tests on one server do not share. */
export class StrictScope {
  settings: StrictSettings;
  counts = new StrictCounts();
  #silent: (() => void)[] = [];

  constructor(settings: StrictSettings) {
    this.settings = settings;
  }

  /** Sets the counters to zero and keeps the settings. */
  reset(): void {
    this.counts = new StrictCounts();
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
