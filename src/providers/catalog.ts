import type { Dialect } from '../contract/dialect.ts';
import type { KeyPlace, Upstream } from '../contract/config/upstream.ts';
import { CATALOG } from './catalog-data.ts';
import type { CatalogRow } from './catalog-data.ts';

/** What an upstream of a dialect is taken to be where nothing else is said. */
interface DialectDefaults {
  readonly keyPlace: KeyPlace;
  readonly openaiAt: string | null;
  readonly anthropicAt: string | null;
}

/** Where keys go and routes begin, by dialect, under a base URL that is scheme and host only. */
export const DIALECT_DEFAULTS: Readonly<Record<Dialect, DialectDefaults>> = {
  openai: { keyPlace: 'bearer', openaiAt: '/v1', anthropicAt: null },
  anthropic: { keyPlace: 'x-api-key', openaiAt: null, anthropicAt: '/v1' },
  gemini: { keyPlace: 'x-goog-api-key', openaiAt: '/v1beta/openai', anthropicAt: null },
  azure: { keyPlace: 'api-key', openaiAt: '/openai/v1', anthropicAt: null },
  bedrock: { keyPlace: 'bearer', openaiAt: '/openai/v1', anthropicAt: null },
  ollama: { keyPlace: 'bearer', openaiAt: '/v1', anthropicAt: null },
  opaque: { keyPlace: 'bearer', openaiAt: null, anthropicAt: null },
};

function upstreamOf(id: string, row: CatalogRow): Upstream {
  const dialect = row.dialect ?? 'openai';
  const defaults = DIALECT_DEFAULTS[dialect];
  const keyNamesAccount = row.keyNamesAccount ?? true;
  return {
    id,
    baseUrl: row.baseUrl,
    dialect,
    // A short-lived OAuth token is always a bearer token.
    keyPlace: keyNamesAccount ? defaults.keyPlace : 'bearer',
    openaiAt: row.openaiAt === undefined ? defaults.openaiAt : row.openaiAt,
    anthropicAt: row.anthropicAt ?? defaults.anthropicAt,
    models: row.models ?? [],
    aliases: {},
    secret: null,
    allow: [],
    keyNamesAccount,
    prices: {},
    limitHeaders: 'auto',
    injectsUsage: false,
    via: null,
  };
}

/** Every upstream that needs no configuration, in the order of their ids. */
export const BUILT_IN_UPSTREAMS: readonly Upstream[] = Object.entries(CATALOG).map(([id, row]) =>
  upstreamOf(id, row),
);
