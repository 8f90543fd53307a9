import type { CheckReport } from './report-schema.ts';
import type { GroupBody } from './groups.ts';
import type { CanaryPace } from './pace.ts';
import type { CanaryStage } from './stage.ts';

/** A consent without which a check is skipped. */
export type Need = 'load' | 'upstream' | 'deploy';

/** Cost of a check, before it runs. */
interface CheckPlan {
  readonly calls: number;
  readonly ms: number;
  /** Calls that reach the provider, and cost money there. */
  readonly paidCalls?: number;
}

/** Outcome of a check. The figures are for programs. */
export type CheckOutcome = Omit<CheckReport, 'id' | 'title'>;

/** A measurement that only a real deployment allows. */
export interface Check {
  readonly id: string;
  readonly title: string;
  readonly needs: readonly Need[];
  plan(pace: CanaryPace, hasUpstream: boolean): CheckPlan;
  groups(pace: CanaryPace): Readonly<Record<string, GroupBody>>;
  run(stage: CanaryStage): Promise<CheckOutcome>;
}

export function outcome(
  isWell: boolean,
  found: string,
  meaning: string,
  figures: CheckOutcome['figures'] = {},
): CheckOutcome {
  return { result: isWell ? 'pass' : 'fail', found, meaning, figures };
}

export function skipped(why: string): CheckOutcome {
  return { result: 'skipped', found: why, meaning: 'The check did not run.', figures: {} };
}
