import type * as z from 'zod';
import {
  type hermesEndpointSchema,
  hermesProviderSchema,
  hermesCredentialSchema,
} from './schema.ts';
import type { Dialect } from '../../../../src/contract/http.ts';
import { SIGNED_IN_BY_HERMES, SIGN_IN_TOKEN_OF_HERMES } from '../names.ts';
import { isPrivateHost } from '../../../../src/runtime/origin.ts';
import { explainIssues } from '../../../../src/config/explain-issues.ts';
import { below, formatPath, type FieldError } from '../../../../src/config/field-error.ts';
import { withNumbers, type ForeignSecrets } from '../groups.ts';
import {
  addressProblem,
  MadeUpstreams,
  placeAt,
  placeNamed,
  upstreamIdOf,
  type ForeignTarget,
} from '../targets.ts';
import { quoteNoKey } from '../../../../src/config/own-config.ts';

export type Endpoint = z.output<typeof hermesEndpointSchema>;
type NamedEndpoint = z.output<typeof hermesProviderSchema>;

export interface HermesEndpoint {
  readonly at: string;
  readonly name: string;
  /** Its key in the map of providers. Empty for an endpoint in a list. Providers are referenced by either name. */
  readonly key: string;
  readonly entry: NamedEndpoint;
}

/** Names that do not identify a provider on their own. */
const OPEN = new Set(['', 'auto', 'custom', 'main', 'ollama', 'vllm', 'llamacpp', 'local']);

const SPOKEN: ReadonlyMap<string, Dialect> = new Map(
  Object.entries({
    chat_completions: 'openai',
    codex_responses: 'openai',
    anthropic_messages: 'anthropic',
    bedrock_converse: 'bedrock',
  }),
);

/** Older and longer names of the same fields. */
const ALIASES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    url: 'base_url',
    api: 'base_url',
    transport: 'api_mode',
    api_key_env: 'key_env',
    default_model: 'model',
    default: 'model',
    baseUrl: 'base_url',
    apiKey: 'api_key',
    keyEnv: 'key_env',
    apiKeyEnv: 'key_env',
    apiMode: 'api_mode',
    defaultModel: 'model',
  }),
);

/** Renames fields with an alias. If both names are present, the usual name applies. */
export function usualNames(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([key, inner]: [string, unknown]) => [
    ALIASES.get(key) ?? key,
    inner,
  ]);
  return { ...Object.fromEntries(entries), ...withoutAliases(value) };
}

function withoutAliases(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([key]) => !ALIASES.has(key)));
}

/** Finds the upstreams of endpoints, by their names in the document. */
export class HermesPlaces {
  readonly made = new MadeUpstreams();
  readonly #named = new Map<string, HermesEndpoint>();
  readonly #omitted: FieldError[];

  constructor(named: readonly HermesEndpoint[], omitted: FieldError[]) {
    this.#omitted = omitted;
    for (const each of named) {
      for (const name of [each.name, each.key].map(plainName).filter(Boolean)) {
        if (!this.#named.has(name)) this.#named.set(name, each);
      }
    }
  }

  entryOf(provider: string | null | undefined): HermesEndpoint | undefined {
    return this.#named.get(plainName(provider ?? '').replace(/^custom:/, ''));
  }

  /** Returns the target of an endpoint. null if it is omitted, or if Hermes chooses it. */
  placeOf(endpoint: Endpoint, at: string): ForeignTarget | null {
    const { provider, base_url: base, api_mode: mode } = endpoint;
    const named = this.entryOf(provider);
    const name = plainName(provider ?? '');
    const path = `${at}.provider`;
    const isSignedIn = !named?.entry.base_url && SIGNED_IN_BY_HERMES.has(name);
    if (base && !isSignedIn) return this.#at(base, spokenIn(mode, base), at, named?.name);
    if (named?.entry.base_url) return this.placeOf(named.entry, named.at);
    if (isSignedIn) {
      const message =
        'Hermes signs in there itself, with tokens that expire. Its calls still go there directly';
      this.#omitted.push({ path, message });
      return null;
    }
    if (OPEN.has(name)) {
      const message = 'Hermes chooses the provider. Set `provider` or `base_url`';
      this.#omitted.push({ path, message });
      return null;
    }
    const place = placeNamed(name, 'hermes');
    if (place !== null) return this.made.add(place);
    this.#omitted.push({
      path,
      message: `${quoteNoKey(name)} has no known address. Set \`base_url\``,
    });
    return null;
  }

  #at(base: string, spoken: Dialect | undefined, at: string, name?: string): ForeignTarget | null {
    const problem = addressProblem(base);
    if (problem !== null) {
      this.#omitted.push({ path: `${at}.base_url`, message: problem });
      return null;
    }
    const place = placeAt(base, spoken);
    const isLocal = isPrivateHost(new URL(base).hostname);
    const { upstream } = place;
    if (upstream === undefined || name === undefined) return this.made.add({ ...place, isLocal });
    const id = upstreamIdOf(name);
    return this.made.add({ ...place, isLocal, id, upstream: { ...upstream, id } });
  }
}

function spokenIn(mode: string | null | undefined, base: string): Dialect | undefined {
  if (mode) return SPOKEN.get(mode);
  return /\/anthropic\/*$/.test(base) ? 'anthropic' : undefined;
}

function plainName(name: string): string {
  return name.trim().toLowerCase().replaceAll(' ', '-');
}

/** Converts limits of an endpoint and of its models that are written as text. */
function usualNumbers(value: unknown): unknown {
  const read = withNumbers(value, ['max_concurrent', 'rate_limit_delay']);
  const { models } = Object(read) as { readonly models?: unknown };
  if (typeof models !== 'object' || models === null || Array.isArray(models)) return read;
  const each = Object.entries(models).map(([name, model]: [string, unknown]) => [
    name,
    withNumbers(model, ['max_concurrent']),
  ]);
  return { ...Object(read), models: Object.fromEntries(each) };
}

/** Returns the named endpoints of a document, from its list and from its map. */
export function namedEndpoints(
  list: readonly unknown[],
  byName: Readonly<Record<string, unknown>>,
  omitted: FieldError[],
): HermesEndpoint[] {
  const entries = [
    ...list.map((value, index) => ({ at: `custom_providers[${index}]`, key: '', value })),
    ...Object.entries(byName).map(([key, value]) => ({
      at: formatPath(['providers', key]),
      key,
      value,
    })),
  ];
  return entries.flatMap(({ at, key, value }) => {
    const document = usualNumbers(usualNames(value));
    const parsed = hermesProviderSchema.safeParse(document);
    if (!parsed.success) {
      const errors = explainIssues(parsed.error, hermesProviderSchema, document);
      omitted.push(...errors.map(({ path, message }) => ({ path: below(at, path), message })));
      return [];
    }
    const name = parsed.data.name ?? key;
    if (name !== '') {
      return [{ at, name, key, entry: { ...parsed.data, provider: parsed.data.provider ?? name } }];
    }
    omitted.push({ path: `${at}.name`, message: 'is missing: expected text' });
    return [];
  });
}

type Pools = Readonly<Record<string, readonly unknown[]>>;

/** The upstream of a pool of keys, and the endpoint that refers to it. */
interface PoolOwner {
  readonly endpoint: Endpoint;
  readonly named: HermesEndpoint | undefined;
  readonly place: ForeignTarget;
}

/** Returns the secrets of the keys in the pool of a provider, in the order in which they are used. */
export function secretsOfPool(
  pools: Pools,
  { endpoint: { provider }, named, place }: PoolOwner,
  secrets: ForeignSecrets,
  omit: (error: FieldError) => void,
): string[] {
  const own = [named?.name ?? '', named?.key ?? ''].filter(Boolean);
  const names = [provider ?? '', ...own, ...own.map((name) => `custom:${name}`)];
  const wanted = new Set(names.map((name) => name.trim().toLowerCase()).filter(Boolean));
  const [name, pool] = Object.entries(pools).find(([key]) => wanted.has(key.toLowerCase())) ?? [];
  if (name === undefined || pool === undefined) return [];
  const keys = pool.flatMap((value, index) => {
    const at = formatPath(['credential_pool', name, index]);
    const parsed = hermesCredentialSchema.safeParse(value);
    if (!parsed.success) {
      omit({ path: at, message: 'is not a valid key of a pool' });
      return [];
    }
    const why = whyNot(parsed.data, place);
    if (why !== null) {
      omit({ path: why.field === null ? at : `${at}.${why.field}`, message: why.message });
      return [];
    }
    const { source, priority } = parsed.data;
    const variable = /^env:(\w+)$/.exec(source ?? '')?.[1];
    const owner = `${name.replace(/^custom:/, '')}_API_KEY`;
    const secret =
      variable === undefined ? secrets.ofOther(at, owner, at) : secrets.ofVariable(variable);
    return [{ secret, priority: priority ?? index }];
  });
  const sorted = keys.toSorted((a, b) => a.priority - b.priority).map(({ secret }) => secret);
  return [...new Set(sorted)];
}

/** Returns the address that all keys of a pool share, for an endpoint without an own entry. null if there is none. */
export function baseOfPool(provider: string, keys: readonly unknown[]): string | null {
  if (!provider.toLowerCase().startsWith('custom:')) return null;
  const bases = new Set(
    keys.map((key) => hermesCredentialSchema.safeParse(key).data?.base_url ?? null),
  );
  const [base] = bases;
  return bases.size === 1 ? (base ?? null) : null;
}

type Credential = ReturnType<typeof hermesCredentialSchema.parse>;

/** Returns why a key is not imported, and which of its fields is the reason. */
function whyNot(
  { auth_type: type, base_url: base, ...others }: Credential,
  place: ForeignTarget,
): { readonly field: string | null; readonly message: string } | null {
  const token = others['access_token'];
  const isSignIn = typeof token === 'string' && token.startsWith(SIGN_IN_TOKEN_OF_HERMES);
  if (isSignIn || (type ?? 'api_key') !== 'api_key') {
    const message =
      'is a sign-in with tokens that expire, and a secret is permanent. Hermes still uses it itself';
    return { field: null, message };
  }
  if (others['last_status'] === 'dead') {
    return {
      field: 'last_status',
      message: 'means that the provider refuses this key permanently',
    };
  }
  // Hermes stores the address of the provider with each key.
  if (!base || (addressProblem(base) === null && isThere(base, place))) return null;
  const message = 'has an address of its own. List it as an endpoint in `custom_providers`';
  return { field: 'base_url', message };
}

function isThere(base: string, place: ForeignTarget): boolean {
  const there = placeAt(base, place.dialect);
  return place.upstream === undefined ? there.id === place.id : there.base === place.base;
}
