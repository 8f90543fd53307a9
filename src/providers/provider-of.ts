import { CATALOG } from './catalog-data.ts';

/** Hosts that the catalog lacks, because each account or region has its own. */
const HOST_PATTERNS: readonly { readonly provider: string; readonly pattern: RegExp }[] = [
  {
    provider: 'azure',
    pattern: /\.(?:openai|services\.ai|cognitiveservices)\.azure\.(?:com|us|cn)$/,
  },
  {
    provider: 'bedrock',
    pattern: /^bedrock-(?:runtime|mantle)[a-z0-9.-]*\.(?:amazonaws\.com|api\.aws)$/,
  },
  { provider: 'vertex', pattern: /(?:^|[.-])aiplatform\.(?:[a-z0-9-]+\.rep\.)?googleapis\.com$/ },
  { provider: 'digitalocean', pattern: /\.do-ai\.run$/ },
];

const PROVIDERS_BY_HOST: ReadonlyMap<string, string> = new Map(
  Object.entries(CATALOG).map(([id, row]) => [new URL(row.baseUrl).host, id]),
);

/**
 * Whose refusals and headers an upstream speaks, as an id of the catalog, or `azure`, `bedrock`,
 * `digitalocean`. A known host decides, whatever an operator called the upstream; behind an unknown
 * one, a gateway or a test server, the upstream's own id is the best guess.
 */
export function providerOf(upstreamId: string, host: string): string {
  const name = host.toLowerCase();
  const known = PROVIDERS_BY_HOST.get(name);
  if (known !== undefined) return known;
  return HOST_PATTERNS.find(({ pattern }) => pattern.test(name))?.provider ?? upstreamId;
}

const known = new WeakMap<object, string>();

/** The same of an upstream as it is configured, which never changes. */
export function providerOfUpstream(upstream: {
  readonly id: string;
  readonly baseUrl: string;
}): string {
  let provider = known.get(upstream);
  if (provider === undefined) {
    provider = providerOf(upstream.id, new URL(upstream.baseUrl).host);
    known.set(upstream, provider);
  }
  return provider;
}
