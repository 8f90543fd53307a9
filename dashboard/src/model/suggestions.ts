import type { SuggestedLimits } from '../../../src/contract/admin/suggestion-schemas.ts';
import { count } from '../format.ts';

/** Limits that a provider publishes of one of its plans. */
export interface Suggestion {
  readonly plan: string;
  /** Globs; empty: all models. */
  readonly models: readonly string[];
  readonly limits: { readonly [Name in keyof SuggestedLimits]: number | undefined };
  readonly source: string;
  readonly date: string;
  readonly note: string | null;
}

/** Words of limits that are no rate by its own name. */
const WORDS: Readonly<Record<string, string>> = {
  max_concurrency: 'slots',
  starts_per_s: 'starts a second',
};

/** Lists limits in a few words each, as in `50 slots` and `1,000 rpm`. */
export function suggestedWords(limits: Suggestion['limits']): string {
  return Object.entries(limits)
    .flatMap(([name, limit]) =>
      limit === undefined ? [] : [`${count(limit)} ${WORDS[name] ?? name}`],
    )
    .join(', ');
}

/** Names a plan with the models that it is about. */
export function planWords({ plan, models }: Suggestion): string {
  return models.length === 0 ? plan : `${plan}, ${models.join(', ')}`;
}
