import type { Upstream } from '../contract/config/upstream.ts';
import { TURN_CONNECTIONS_EACH } from '../contract/config/upstream-config.ts';
import { DIALECT_DEFAULTS } from './dialects.ts';
import { PROVIDERS } from './index.ts';
import type { Provider } from './provider.ts';

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
