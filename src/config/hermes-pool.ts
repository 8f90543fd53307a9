import { hermesCredentialSchema } from '../contract/config/hermes-schema.ts';
import { SIGN_IN_TOKEN_OF_HERMES } from '../providers/foreign-facts.ts';
import { formatPath, type FieldError } from './field-error.ts';
import { addressProblem, placeAt, type ForeignTarget } from './foreign-targets.ts';
import type { ForeignSecrets } from './foreign-secrets.ts';
import type { Endpoint, HermesEndpoint } from './hermes-endpoints.ts';

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
