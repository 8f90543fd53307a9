import type { ReportVerdict } from '../support/report.ts';

/** Surroundings of a scenario that runs. */
export interface Bench {
  /** Folder for whatever it keeps; it is deleted at the end. */
  readonly dir: string;
  /** Whether a short run is wanted, which judges nothing. */
  readonly isQuick: boolean;
  /** Peers that are installed and asked for. */
  readonly peers: Peers;
  /** Has a thing stopped when the scenario is over, and hands it back. */
  readonly keep: <T extends Stoppable>(thing: T) => T;
  /** Says that a round of measurements is over. */
  readonly roundIsOver: () => void;
}

export interface Peers {
  readonly haproxy: boolean;
  /** Program of Portkey's gateway; null: not to be compared to. */
  readonly portkey: string | null;
}

interface Stoppable {
  stop(): Promise<void>;
}

/** One question to the build, which can be asked alone. */
export interface BenchScenario {
  /** Word for `--only`. */
  readonly name: string;
  /** Measures, prints what came of it, and judges. */
  run(bench: Bench): Promise<ReportVerdict[]>;
}
