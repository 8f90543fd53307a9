import type { SuggestedLimits } from '../../../src/contract/admin/suggestion-schemas.ts';
import { count } from '../format.ts';

/** Limits that a provider publishes of one of its plans, or that its headers have told. */
export interface Suggestion {
  readonly plan: string;
  /** Globs; empty: all models. */
  readonly models: readonly string[];
  readonly limits: SuggestedLimits;
  /** Null: seen in headers. */
  readonly source: string | null;
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
    .map(([name, limit]) => `${count(limit)} ${WORDS[name] ?? name}`)
    .join(', ');
}

/** Names a plan with the models that it is about. */
export function planWords({ plan, models }: Suggestion): string {
  return models.length === 0 ? plan : `${plan}, ${models.join(', ')}`;
}

/** Limits that an upstream has told in headers. */
export interface SeenLimits {
  readonly upstream: string;
  readonly model: string | null;
  readonly limits: SuggestedLimits;
  readonly at: string;
}

/** Makes a suggestion of what headers have told: of all that there is to go by it is the surest. */
export function suggestionSeen({ model, limits, at }: SeenLimits): Suggestion {
  const models = model === null ? [] : [model];
  return {
    plan: 'Seen in headers',
    models,
    limits,
    source: null,
    date: at.slice(0, 10),
    note: null,
  };
}
