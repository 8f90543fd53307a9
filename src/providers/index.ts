import * as all from './all.ts';
import type { Provider } from './provider.ts';

/** Every provider, in the order of their ids. */
export const PROVIDERS: readonly Provider[] = Object.values<Provider>(all).toSorted((a, b) =>
  a.id < b.id ? -1 : 1,
);

const BY_ID: ReadonlyMap<string, Provider> = new Map(
  PROVIDERS.map((provider) => [provider.id, provider]),
);

const BY_HOST: ReadonlyMap<string, Provider> = new Map(
  PROVIDERS.flatMap((provider) =>
    provider.baseUrl === null ? [] : [[new URL(provider.baseUrl).host, provider] as const],
  ),
);

/** Finds a provider by its id. */
export function providerNamed(id: string): Provider | null {
  return BY_ID.get(id) ?? null;
}

/** Finds the provider that is known to answer at a host. */
export function providerAt(host: string): Provider | null {
  const name = host.toLowerCase();
  return BY_HOST.get(name) ?? PROVIDERS.find(({ hosts }) => hosts?.test(name) === true) ?? null;
}

/** Upstreams never change, so each one's provider is looked up once. */
const known = new WeakMap<object, Provider | null>();

/**
 * Finds the provider whose limits, refusals and headers an upstream has. A known host decides, whatever an
 * operator called the upstream; behind an unknown one, a gateway or a test server, the upstream's own id is
 * the best guess. Null: nothing is known of it.
 */
export function providerOf(upstream: {
  readonly id: string;
  readonly baseUrl: string;
}): Provider | null {
  let provider = known.get(upstream);
  if (provider === undefined) {
    provider = providerAt(new URL(upstream.baseUrl).host) ?? providerNamed(upstream.id);
    known.set(upstream, provider);
  }
  return provider;
}
