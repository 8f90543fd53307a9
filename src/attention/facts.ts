import type { Attention } from '../contract/attention.ts';
import type { GroupStatus } from '../contract/admin/status-schemas.ts';
import type { RefusalCount } from '../contract/refusals.ts';
import type { Warning } from '../contract/warnings.ts';

/** Budgets of a group in US dollars. null: none for that period. */
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
  /** Why, as in `is not set`. */
  readonly fault: string;
  /** Effect of that, as in `its calls are refused`. */
  readonly effect: string;
  /** How to set it where this deployment runs. */
  readonly advice: string;
}

/** Facts about a deployment at one moment, from which the rules make their list. */
export interface AttentionFacts {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly groups: readonly GroupStatus[];
  /** Refusals of Headgate's own in the last 10 minutes. */
  readonly refusals: readonly RefusalCount[];
  /** The last warnings of all pools, the latest first. */
  readonly warnings: readonly Warning[];
  readonly secrets: readonly MissingSecret[];
  /** Warnings of the configuration in force. */
  readonly configWarnings: readonly string[];
  /** Budgets by the name of the group. */
  readonly budgets: ReadonlyMap<string, BudgetAmountsUsd>;
}

/** The subject of a group: the key or team whose limits it holds, or the group itself. */
export function subjectOf(group: string): Attention['subject'] {
  const [, kind, id] = /^(key|team):(.+)$/s.exec(group) ?? [];
  if ((kind !== 'key' && kind !== 'team') || id === undefined) return { kind: 'group', id: group };
  return { kind, id };
}
