import type { Dialect } from '../contract/http.ts';
import {
  TURN_CONNECTIONS_EACH,
  type KeyHeader,
  type Upstream,
} from '../contract/config/upstream.ts';
import { PROVIDERS } from './index.ts';
import type { Provider } from './provider.ts';

/** Defaults of an upstream with a dialect, for a base URL of only scheme and host. */
interface DialectDefaults {
  readonly keyPlace: KeyHeader;
  readonly openaiAt: string | null;
  readonly anthropicAt: string | null;
  /** The prefix of a model that its routes accept and that does not change its meaning, in lower case. */
  readonly modelPrefix?: RegExp;
}

/** The table of all dialects: where keys go, where routes begin and how models are written. */
export const DIALECT_DEFAULTS: Readonly<Record<Dialect, DialectDefaults>> = {
  openai: { keyPlace: 'bearer', openaiAt: '/v1', anthropicAt: null },
  anthropic: { keyPlace: 'x-api-key', openaiAt: null, anthropicAt: '/v1' },
  gemini: {
    keyPlace: 'x-goog-api-key',
    openaiAt: '/v1beta/openai',
    anthropicAt: null,
    modelPrefix: /^(?:models|google|publishers\/google\/models)\//,
  },
  azure: { keyPlace: 'api-key', openaiAt: '/openai/v1', anthropicAt: null },
  bedrock: { keyPlace: 'bearer', openaiAt: '/openai/v1', anthropicAt: null },
  ollama: { keyPlace: 'bearer', openaiAt: '/v1', anthropicAt: null },
  opaque: { keyPlace: 'bearer', openaiAt: null, anthropicAt: null },
};

function upstreamOf(provider: Provider, baseUrl: string): Upstream {
  const { id, dialect = 'openai', keyNamesAccount = true, speaksTurns = false } = provider;
  const defaults = DIALECT_DEFAULTS[dialect];
  return {
    id,
    baseUrl,
    dialect,
    // A short-lived OAuth token is always a bearer token.
    keyPlace: keyNamesAccount ? defaults.keyPlace : 'bearer',
    openaiAt: provider.openaiAt === undefined ? defaults.openaiAt : provider.openaiAt,
    anthropicAt: provider.anthropicAt ?? defaults.anthropicAt,
    models: provider.models ?? [],
    aliases: {},
    secret: null,
    isKeyless: false,
    requiresKey: 'auto',
    allow: [],
    keyNamesAccount,
    accountBy: 'auto',
    prices: {},
    limitHeaders: 'auto',
    injectsUsage: false,
    redirects: 'rewrite',
    requestHeaders: null,
    sockets: speaksTurns ? 'turns' : 'sessions',
    turnConnectionsEach: TURN_CONNECTIONS_EACH,
    via: null,
  };
}

/** Every upstream that needs no configuration, ordered by id. */
export const BUILT_IN_UPSTREAMS: readonly Upstream[] = PROVIDERS.flatMap((provider) =>
  provider.baseUrl === null ? [] : [upstreamOf(provider, provider.baseUrl)],
);
