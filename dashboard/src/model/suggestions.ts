import type { SuggestedLimits } from '../../../src/contract/shared-shapes.ts';
import { count } from '../format.ts';

/** Limits that a provider publishes for a plan, or reports in headers. */
export interface Suggestion {
  readonly plan: string;
  /** Globs. Empty means all models. */
  readonly models: readonly string[];
  readonly limits: SuggestedLimits;
  /** URL of the source. null if seen in headers. */
  readonly source: string | null;
  readonly date: string;
  readonly note: string | null;
}

/** Words for limits whose names are not readable. */
const WORDS: Readonly<Record<string, string>> = {
  max_concurrency: 'slots',
  starts_per_s: 'starts per second',
};

/** Limits in a few words each, such as `50 slots` and `1,000 rpm`. */
export function suggestedWords(limits: Suggestion['limits']): string {
  return Object.entries(limits)
    .map(([name, limit]) => `${count(limit)} ${WORDS[name] ?? name}`)
    .join(', ');
}

export function planWords({ plan, models }: Suggestion): string {
  return models.length === 0 ? plan : `${plan}, ${models.join(', ')}`;
}

/** Limits that an upstream reported in headers. */
export interface SeenLimits {
  readonly upstream: string;
  readonly model: string | null;
  readonly limits: SuggestedLimits;
  readonly at: string;
}

/** Converts limits from headers to a suggestion. They are more reliable than published limits. */
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
