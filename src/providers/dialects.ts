import type { Dialect } from '../contract/dialect.ts';
import type { KeyHeader } from '../contract/config/upstream.ts';

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
