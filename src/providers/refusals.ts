import type { WaitHeader } from '../upstream/refusal/refusal-delay.ts';
import { refusalRules, type RefusalRules } from '../upstream/refusal/refusal-table.ts';
import { PROVIDERS, providerOf } from './index.ts';
import type { Provider } from './provider.ts';

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
export const WAIT_HEADERS: readonly WaitHeader[] = [
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
