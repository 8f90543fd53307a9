import * as alibaba from './alibaba.ts';
import * as anthropic from './anthropic.ts';
import * as gateways from './gateways.ts';
import * as google from './google.ts';
import * as plainHosts from './hosts.ts';
import * as inference from './inference.ts';
import * as labs from './labs.ts';
import * as moonshot from './moonshot.ts';
import * as openai from './openai.ts';
import * as zhipu from './zhipu.ts';
import type { Provider } from './provider.ts';

/** All files of providers. Each export of them is a provider. */
const FILES = [
  alibaba,
  anthropic,
  gateways,
  google,
  plainHosts,
  inference,
  labs,
  moonshot,
  openai,
  zhipu,
];

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
