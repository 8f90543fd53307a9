import type { CheckReport } from './report-schema.ts';
import type { GroupBody } from './groups.ts';
import type { CanaryPace } from './pace.ts';
import type { CanaryStage } from './stage.ts';

/** Consent or means without which a check is left out. */
export type Need = 'load' | 'upstream' | 'deploy';

/** Cost of a check, before it runs. */
interface CheckPlan {
  readonly calls: number;
  readonly ms: number;
  /** Calls that reach the provider, and cost money there. */
  readonly paidCalls?: number;
}

/** Outcome of a check; figures are for machines. */
export type CheckOutcome = Omit<CheckReport, 'id' | 'title'>;

/** One thing that only a real deployment can tell. */
export interface Check {
  readonly id: string;
  readonly title: string;
  readonly needs: readonly Need[];
  plan(pace: CanaryPace, hasUpstream: boolean): CheckPlan;
  /** Groups that it wants, by a label of its own. */
  groups(pace: CanaryPace): Readonly<Record<string, GroupBody>>;
  run(stage: CanaryStage): Promise<CheckOutcome>;
}

/** Makes an outcome. */
export function outcome(
  isWell: boolean,
  found: string,
  meaning: string,
  figures: CheckOutcome['figures'] = {},
): CheckOutcome {
  return { result: isWell ? 'pass' : 'fail', found, meaning, figures };
}

/** Makes the outcome of a check that was not carried out. */
export function skipped(why: string): CheckOutcome {
  return { result: 'skipped', found: why, meaning: 'Nothing was tried.', figures: {} };
}
