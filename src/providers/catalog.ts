import type { Dialect } from '../contract/http.ts';
import {
  TURN_CONNECTIONS_EACH,
  type KeyHeader,
  type Upstream,
} from '../contract/config/upstream.ts';
import * as codingPlans from './coding-plans.ts';
import * as nativeDialects from './native-dialects.ts';
import * as inference from './inference.ts';
import * as plainHosts from './hosts.ts';
import * as labs from './labs.ts';
import type { Provider } from './provider.ts';

/** All providers, the provider of an upstream, and the upstreams that need no configuration. */

/** All files of providers. Each export of them is a provider. */
const FILES = [codingPlans, plainHosts, inference, labs, nativeDialects];

/** Every provider, ordered by id. */
export const PROVIDERS: readonly Provider[] = FILES.flatMap((file) =>
  Object.values<Provider>(file),
).toSorted((a, b) => (a.id < b.id ? -1 : 1));

const BY_ID: ReadonlyMap<string, Provider> = new Map(
  PROVIDERS.map((provider) => [provider.id, provider]),
);

/** The providers at each host. The separate endpoint of a plan comes after the main provider. */
const BY_HOST = new Map<string, readonly Provider[]>();
// The command line runs this under Node 20, which has no Map.groupBy.
for (const provider of PROVIDERS) {
  if (provider.baseUrl === null) continue;
  const { host } = new URL(provider.baseUrl);
  BY_HOST.set(host, [...(BY_HOST.get(host) ?? []), provider]);
}

export function providerNamed(id: string): Provider | null {
  return BY_ID.get(id) ?? null;
}

export function providerAt(host: string): Provider | null {
  const name = host.toLowerCase();
  return (
    BY_HOST.get(name)?.[0] ?? PROVIDERS.find(({ hosts }) => hosts?.test(name) === true) ?? null
  );
}

/** Finds the provider among several at a host, by the path of the base URL, or otherwise by the upstream's id. */
function endpointAt(host: string, path: string, id: string): Provider | null {
  const there = BY_HOST.get(host.toLowerCase()) ?? [];
  if (there.length < 2) return null;
  // Operators type base URLs by hand.
  const plain = path.toLowerCase().replaceAll(/\/{2,}/g, '/');
  const byPath = there.find(
    ({ openaiAt }) => typeof openaiAt === 'string' && plain.startsWith(openaiAt),
  );
  return byPath ?? there.find((provider) => provider.id === id) ?? null;
}

/** Upstream objects are never modified, so the provider of each is looked up once. */
const known = new WeakMap<object, Provider | null>();

/**
 * Finds the provider whose limits, refusals and headers apply to an upstream. A known host decides, whatever the
 * upstream's id. For an unknown host, such as a gateway or a test server, the upstream's own id is the best guess.
 * Returns null if the provider is unknown.
 */
export function providerOf(upstream: {
  readonly id: string;
  readonly baseUrl: string;
}): Provider | null {
  let provider = known.get(upstream);
  if (provider === undefined) {
    const { host, pathname } = new URL(upstream.baseUrl);
    provider =
      endpointAt(host, pathname, upstream.id) ?? providerAt(host) ?? providerNamed(upstream.id);
    known.set(upstream, provider);
  }
  return provider;
}

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
