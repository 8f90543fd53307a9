import type { Config, UpstreamConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { compileGlobs } from '../../routing/glob.ts';
import { CREDENTIAL_HEADERS } from '../../routing/partition.ts';
import { UNKNOWN_NAME } from '../../upstream/operation/operation.ts';
import type { FieldError } from '../field-error.ts';
import { isAddress, isPrivateHost } from '../../runtime/private-address.ts';

/** Finds upstreams without an address, or with one that may not be called. */
export function upstreamErrors(
  entry: UpstreamConfig,
  path: string,
  builtInIds: ReadonlySet<string>,
  { privateUpstreams }: { readonly privateUpstreams: boolean },
): FieldError[] {
  const at = `${path}.base_url`;
  if (entry.base_url === undefined) {
    if (builtInIds.has(entry.id)) return [];
    return [{ path: at, message: `is required, because "${entry.id}" is not a built-in upstream` }];
  }
  const url = new URL(entry.base_url);
  const messages: string[] = [];
  if (url.username !== '' || url.password !== '') {
    messages.push('may not hold a user name or password; use auth with the name of a secret');
  }
  if (/[?#]/.test(entry.base_url)) messages.push('may not have a query or a fragment');
  if (!privateUpstreams && entry.via === null) {
    if (isPrivateHost(url.hostname)) {
      messages.push(
        `leads to a private address (${url.hostname}), which cannot be reached from here; ` +
          'set via to the name of a service or VPC binding, or host Headgate yourself beside it',
      );
    } else if (url.protocol === 'http:') {
      messages.push(
        'is plain http, which would show the keys to the network; use https, or set via to the ' +
          'name of a service or VPC binding',
      );
    }
  }
  return messages.map((message) => ({ path: at, message }));
}

/** Finds a header that would show keys as the names of accounts. */
export function accountErrors({ account_by: by }: UpstreamConfig, path: string): FieldError[] {
  if (!by.startsWith('header:') || !CREDENTIAL_HEADERS.has(by.slice('header:'.length))) return [];
  const message = `"${by}" is where keys stand, and they change; name what stays`;
  return [{ path: `${path}.account_by`, message }];
}

/** Warns of upstreams where nobody can say whose its key is: of strangers it is not believed. */
export function accountWarnings({ upstreams, keys }: Pick<Config, 'upstreams' | 'keys'>): string[] {
  const ids = upstreams.flatMap(({ id, account_by: by }) => (by.startsWith('header:') ? [id] : []));
  if (ids.length === 0 || keys.length > 0) return [];
  return [
    `account_by of ${ids.join(', ')} names a header of calls, which is believed behind a gateway key only, and keys lists none: ` +
      'each provider key there is an account of its own.',
  ];
}

/** Warns of an upstream whose routes repeat the end of its base URL. */
export function upstreamWarnings(entry: UpstreamConfig, upstream: Upstream | undefined): string[] {
  if (entry.base_url === undefined || upstream === undefined) return [];
  const { id, baseUrl } = upstream;
  const twice = [upstream.openaiAt, upstream.anthropicAt].find(
    (at) => at !== null && at !== '' && baseUrl.endsWith(at),
  );
  if (twice === undefined || twice === null) return [];
  return [
    `Upstream "${id}": base_url ends with ${twice}, and its routes begin at ${twice} below it, so ` +
      `that /v1/* calls ${baseUrl}${twice}/…; shorten base_url, or set openai_at or anthropic_at to "".`,
  ];
}

/**
 * Warns of upstreams at an IP address: Workers call names only, and Cloudflare's edge answers such a call with
 * error 1003. A private address is an error before.
 */
export function addressWarnings(
  { upstreams }: Pick<Config, 'upstreams'>,
  { privateUpstreams }: { readonly privateUpstreams: boolean },
): string[] {
  if (privateUpstreams) return [];
  return upstreams.flatMap(({ id, base_url: baseUrl, via }, index) => {
    if (baseUrl === undefined || via !== null) return [];
    const { hostname } = new URL(baseUrl);
    if (!isAddress(hostname)) return [];
    return [
      `Upstream "${id}": upstreams[${index}].base_url is an IP address (${hostname}), which a Worker cannot call: ` +
        'Cloudflare answers with error 1003. Give it a name in DNS, or set via to the name of a service or VPC binding.',
    ];
  });
}

/** Warns of stored secrets that no caller can use. */
export function secretWarnings(config: Config, upstreams: ReadonlyMap<string, Upstream>): string[] {
  if (config.keys.length > 0) return [];
  const ids = [...upstreams.values()].filter(({ secret }) => secret !== null).map(({ id }) => id);
  if (ids.length === 0) return [];
  return [
    `Stored secrets are used behind a gateway key only, and keys lists none: calls to ${ids.join(', ')} are refused.`,
  ];
}

/** Warns about upstreams that accept calls without a key: routes without a slot are closed there unless listed. */
export function networkWarnings({ upstreams }: Pick<Config, 'upstreams'>): string[] {
  return upstreams.flatMap(({ id, auth, via, allow, enabled }, index) => {
    if (!enabled || allow.length > 0) return [];
    const isKeyless = auth === 'none';
    if (!isKeyless && (via === null || auth !== 'passthrough')) return [];
    const why = isKeyless ? 'needs no key' : `is reached through the binding ${via}`;
    const calls = isKeyless ? '' : ' to calls without a provider key';
    return [
      `Upstream "${id}" ${why}, so routes that take no slot are closed${calls}, except those that list models, count ` +
        `tokens or check health. To open others, list their operations in upstreams[${index}].allow, for example files or models.`,
    ];
  });
}

/** Warns about upstreams with the operator's access where every WebSocket is a session: unknown routes are closed there. */
export function socketWarnings({ upstreams }: Pick<Config, 'upstreams'>): string[] {
  return upstreams.flatMap(({ id, auth, via, allow, enabled, websocket }, index) => {
    const isOwnAccess = auth !== 'passthrough' || via !== null;
    if (!enabled || websocket !== 'session' || !isOwnAccess) return [];
    if (compileGlobs(allow)(UNKNOWN_NAME)) return [];
    return [
      `Upstream "${id}" treats every WebSocket as a session (websocket: session) and needs no key of the caller, so sessions on unknown routes are closed. ` +
        `To open one, name its path in match.paths of a group with methods: [GET], and list other in upstreams[${index}].allow.`,
    ];
  });
}
