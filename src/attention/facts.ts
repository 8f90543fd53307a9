import type { Attention } from '../contract/attention.ts';
import type { GroupStatus } from '../contract/admin/status-schemas.ts';
import type { RefusalCount } from '../contract/refusals.ts';
import type { Warning } from '../contract/warnings.ts';

/** Budgets of a group in US dollars. null means no budget for that period. */
export interface BudgetAmountsUsd {
  readonly hour: number | null;
  readonly day: number | null;
  readonly month: number | null;
}

/** A secret that cannot be used. */
export interface MissingSecret {
  readonly subject: Attention['subject'];
  readonly group: string | null;
  readonly secret: string;
  /** A predicate, as in `is not set`. */
  readonly fault: string;
  /** A clause without a full stop, as in `calls to this upstream are rejected`. */
  readonly effect: string;
  /** How to set the secret in this deployment. */
  readonly advice: string;
}

/** Facts about a deployment at one instant. */
export interface AttentionFacts {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly groups: readonly GroupStatus[];
  /** Calls that Headgate itself rejected in the last 10 minutes. */
  readonly refusals: readonly RefusalCount[];
  /** The last warnings of all pools, the latest first. */
  readonly warnings: readonly Warning[];
  readonly secrets: readonly MissingSecret[];
  readonly configWarnings: readonly string[];
  /** Budgets by group name. */
  readonly budgets: ReadonlyMap<string, BudgetAmountsUsd>;
}

/** Returns the key or team whose limits a group holds, or the group itself. */
export function subjectOf(group: string): Attention['subject'] {
  const [, kind, id] = /^(key|team):(.+)$/s.exec(group) ?? [];
  if ((kind !== 'key' && kind !== 'team') || id === undefined) return { kind: 'group', id: group };
  return { kind, id };
}
