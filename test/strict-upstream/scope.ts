import { StrictCounts } from './counts.ts';
import { FailureScript } from './failures.ts';
import { StrictRateLimiter } from './rates.ts';
import { StrictRuns } from './runs.ts';
import type { StrictSettings } from './settings.ts';
import type { StrictSocket } from './sockets/socket.ts';

/** A request as it arrived, where requests are kept. */
export interface StrictRequest {
  readonly target: string;
  /** Names and values in turn, as they were written. */
  readonly rawHeaders: readonly string[];
  /** Body of the request so far. */
  readonly chunks: Buffer[];
  isWhole: boolean;
}

/** Settings and counters that tests on one server do not share. */
export class StrictScope {
  settings: StrictSettings;
  counts = new StrictCounts();
  limiter = new StrictRateLimiter();
  failures = new FailureScript();
  received: StrictRequest[] = [];
  runs = new StrictRuns();
  /** WebSockets that are open. */
  readonly sockets = new Set<StrictSocket>();
  #silent: (() => void)[] = [];
  #resumes = 0;

  constructor(settings: StrictSettings) {
    this.settings = settings;
  }

  /** Sets the counters and what was used of the rate limits to zero; no failures are to come. */
  reset(): void {
    this.counts = new StrictCounts();
    this.limiter = new StrictRateLimiter();
    this.failures = new FailureScript();
    this.received = [];
    this.runs = new StrictRuns();
  }

  /** How a call that arrives now waits for the next `resume`, however late it goes silent. */
  waitForResume(): () => Promise<void> {
    const before = this.#resumes;
    return () =>
      new Promise((resolve) => {
        if (this.#resumes > before) resolve();
        else this.#silent.push(resolve);
      });
  }

  /** Ends the silence of all calls that have arrived, also of those that are not silent yet. */
  resume(): void {
    this.#resumes += 1;
    const silent = this.#silent;
    this.#silent = [];
    for (const go of silent) go();
  }
}
