import type { Dialect } from '../contract/http.ts';
import type { WaitHeader } from '../upstream/refusal/refusal-delay.ts';
import { refusalRules, type RefusalRules } from '../upstream/refusal/refusal-table.ts';
import { providerOf, PROVIDERS } from './catalog.ts';
import type { CountingRow, LimitProfile, PublishedLimit, Provider } from './provider.ts';

/**
 * What the limits of a provider mean for a call: which ones apply, how their tokens count, and which refusals and
 * headers report them.
 */

interface ProfileUsage {
  /** All of the input, including tokens that were read from a cache. */
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly outputTokens: number;
}

/**
 * The profile of an unknown provider. Everything that may count does count, because that costs a wait, while the
 * opposite costs a refusal. Output is the exception: reserving `max_tokens` would leave most of a limit unused.
 */
export const DEFAULT_PROFILE: LimitProfile = {
  reserveOutput: 'mean',
  countsCacheReads: true,
  outputWeight: 1,
  failedCount: true,
  refundsUnused: true,
};

const COUNTING = PROVIDERS.filter(({ counts }) => counts !== undefined);

/**
 * Returns how the provider of an upstream counts calls of a model, from the provider's rows and those of a provider
 * that is known by its dialect.
 */
export function limitProfileFor(
  upstream: { readonly id: string; readonly baseUrl: string; readonly dialect: Dialect },
  model: string | null,
): LimitProfile {
  const provider = providerOf(upstream);
  // The name is the end of `models/…`, `vendor/…` and Bedrock's `eu.anthropic.…`.
  const path = `.${(model ?? '').toLowerCase().replaceAll('/', '.')}`;
  const isFor = ({ models }: CountingRow) =>
    models === undefined || models.some((prefix) => path.includes(`.${prefix}`));
  let profile = DEFAULT_PROFILE;
  for (const each of COUNTING) {
    const isOfDialect = each.isKnownByDialect === true && each.id === upstream.dialect;
    if (each !== provider && !isOfDialect) continue;
    for (const row of each.counts ?? []) {
      if (isFor(row)) profile = { ...profile, ...row.counts };
    }
  }
  return profile;
}

/** Counts a finished call as its provider does, in tokens of the provider's limits. */
export function countedTokens(
  profile: LimitProfile,
  usage: ProfileUsage,
): { readonly inputTokens: number; readonly outputTokens: number } {
  const { inputTokens, cacheReadTokens, outputTokens } = usage;
  const uncachedTokens = Math.max(0, inputTokens - cacheReadTokens);
  return {
    inputTokens: profile.countsCacheReads ? inputTokens : uncachedTokens,
    outputTokens: profile.reserveOutput === 'none' ? 0 : outputTokens * profile.outputWeight,
  };
}

export const UNKNOWN_LIMIT = 64;

/**
 * Finds the limit that applies to a call at a provider, or null. The longest prefix wins. A model is compared in lower
 * case and without a path before it (`models/…`, `vendor/…`). If the model is null, only limits of the whole upstream
 * apply.
 */
export function knownLimitFor(
  provider: Provider | null,
  model: string | null,
): PublishedLimit | null {
  const name = (model ?? '').toLowerCase().split('/').at(-1) ?? '';
  let best: PublishedLimit | null = null;
  let longest = -1;
  for (const limit of provider?.limits ?? []) {
    for (const prefix of [limit.modelPrefix, ...(limit.formerPrefixes ?? [])]) {
      if (!name.startsWith(prefix) || prefix.length <= longest) continue;
      best = limit;
      longest = prefix.length;
    }
  }
  return best;
}

/** Lists the limits of a provider that apply to certain models. If there are any, a call's model must be known. */
export function limitsOfModels(provider: Provider | null): readonly PublishedLimit[] {
  return provider?.limits?.filter(({ modelPrefix }) => modelPrefix !== '') ?? [];
}

/** An exhausted window of an Anthropic subscription. */
function unified(window: string, scope: 'credential' | 'model'): WaitHeader {
  const prefix = `anthropic-ratelimit-unified-${window}`;
  return {
    name: `${prefix}reset`,
    onlyIf: { name: `${prefix}status`, is: /^(?:rejected|blocked)/i },
    scope,
  };
}

/** A window of a ChatGPT plan that is used by 100 % or more. */
function codex(window: 'primary' | 'secondary', reset: string): WaitHeader {
  const prefix = `x-codex-${window}`;
  return {
    name: `${prefix}-${reset}`,
    onlyIf: { name: `${prefix}-used-percent`, is: /^\s*[1-9]\d{2,}(?:\.\d+)?\s*$/ },
    scope: 'credential',
  };
}

/** A counter that is at 0. */
function counter(remaining: string, ...resets: readonly string[]): readonly WaitHeader[] {
  return resets.map((name) => ({ name, onlyIf: { name: remaining, is: /^\s*0\s*$/ } }));
}

/** Dimensions of the headers that many providers copy from OpenAI and Anthropic. */
const DIMENSIONS = ['requests', 'tokens', 'input-tokens', 'output-tokens'] as const;

/**
 * Headers of a refusal with the end of an exhausted window. They are read from every upstream, because gateways pass
 * them on. The headers of plans are undocumented, and were seen in responses to subscribers, 2026-11-20. Anthropic's
 * last window summarizes the others.
 */
const WAIT_HEADERS: readonly WaitHeader[] = [
  unified('5h-', 'credential'),
  unified('7d-', 'credential'),
  ...['opus', 'sonnet', 'haiku', 'fable'].map((model) => unified(`7d_${model}-`, 'model')),
  unified('', 'credential'),
  codex('primary', 'reset-after-seconds'),
  codex('primary', 'reset-at'),
  codex('primary', 'resets-in-seconds'),
  codex('secondary', 'reset-after-seconds'),
  codex('secondary', 'reset-at'),
  codex('secondary', 'resets-in-seconds'),
  ...DIMENSIONS.flatMap((name) => [
    ...counter(`x-ratelimit-remaining-${name}`, `x-ratelimit-reset-${name}`),
    ...counter(`anthropic-ratelimit-${name}-remaining`, `anthropic-ratelimit-${name}-reset`),
  ]),
  ...counter('x-ratelimit-remaining', 'x-ratelimit-reset', 'x-ratelimit-reset-after'),
  ...counter('ratelimit-remaining', 'ratelimit-reset'),
  {
    // GitHub Models, on refusals: a number of seconds.
    name: 'x-ratelimit-timeremaining',
    onlyIf: { name: 'x-ratelimit-timeremaining', is: /^\s*[1-9]/ },
  },
  {
    // The IETF draft, as Hugging Face sends it: `"api";r=0;t=55`, and in its older form: `limit=60, remaining=0,
    // reset=55`.
    name: 'ratelimit',
    onlyIf: { name: 'ratelimit', is: /(?:;\s*r|(?:^|,)\s*remaining)=0(?!\d)/ },
    time: /(?:;\s*t|(?:^|,)\s*reset)=(\d{1,9})(?!\d)/,
  },
];

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
