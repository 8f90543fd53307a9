import { refusalRules, type RefusalRules } from '../upstream/refusal/refusal-table.ts';
import { PROVIDERS, providerOf } from './index.ts';
import type { Provider } from './provider.ts';
import { WAIT_HEADERS } from './wait-headers.ts';

const UNKNOWN: RefusalRules = rulesOf({});

const RULES = new Map(PROVIDERS.map((provider: Provider) => [provider, rulesOf(provider)]));

function rulesOf({
  refusals = [],
  quirks = {},
}: Pick<Provider, 'refusals' | 'quirks'>): RefusalRules {
  return refusalRules(refusals, { ...quirks, waitHeaders: WAIT_HEADERS });
}

export function refusalRulesOf(upstream: {
  readonly id: string;
  readonly baseUrl: string;
}): RefusalRules {
  const provider = providerOf(upstream);
  return (provider === null ? undefined : RULES.get(provider)) ?? UNKNOWN;
}
