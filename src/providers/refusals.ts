import { refusalRules, type RefusalRules } from '../upstream/refusal/refusal-table.ts';
import { PROVIDERS, providerOf } from './index.ts';

/** The rules of an upstream of which nothing is known. */
const UNKNOWN: RefusalRules = refusalRules([], {});

const RULES = new Map(
  PROVIDERS.map((provider) => [
    provider,
    refusalRules(provider.refusals ?? [], provider.quirks ?? {}),
  ]),
);

/** Tells how the provider of an upstream refuses. */
export function refusalRulesOf(upstream: {
  readonly id: string;
  readonly baseUrl: string;
}): RefusalRules {
  const provider = providerOf(upstream);
  return (provider === null ? undefined : RULES.get(provider)) ?? UNKNOWN;
}
