import type { Config, WebhookConfig } from '../../contract/config/config.ts';
import {
  TURN_CONNECTIONS_EACH,
  type UpstreamConfig,
  type Upstream,
} from '../../contract/config/upstream.ts';
import { compileGlobs } from '../../routing/glob.ts';
import { CREDENTIAL_HEADERS } from '../../routing/pool.ts';
import { UNKNOWN_NAME } from '../../upstream/operation/operation.ts';
import { isAddress, isPrivateHost } from '../../runtime/origin.ts';
import { upstreamsOf, namesPaths } from '../../routing/group-match.ts';
import { countsTokens } from '../../routing/group-limits.ts';
import {
  LEASE,
  LIMITED_OPERATIONS,
  LISTED_OPERATIONS,
} from '../../upstream/operation/operations-table.ts';
import { LEASE_RIGHTS } from '../../routing/key-access.ts';
import { ticked, quoteName, type FieldError } from '../field-error.ts';
import { nearestNames } from '../explain-issues.ts';

/** Finds upstreams without an address, or with an address that must not be called. */
export function upstreamErrors(
  entry: UpstreamConfig,
  path: string,
  builtInIds: ReadonlySet<string>,
  { privateUpstreams }: { readonly privateUpstreams: boolean },
): FieldError[] {
  const at = `${path}.base_url`;
  if (entry.base_url === undefined) {
    if (builtInIds.has(entry.id)) return [];
    return [
      { path: at, message: `is required, because \`${entry.id}\` is not a built-in upstream` },
    ];
  }
  const url = new URL(entry.base_url);
  const messages: string[] = [];
  if (url.username !== '' || url.password !== '') {
    messages.push('must not contain a user name or password; use auth with the name of a secret');
  }
  if (/[?#]/.test(entry.base_url)) messages.push('must not have a query or a fragment');
  if (!privateUpstreams && entry.via === null) {
    if (isPrivateHost(url.hostname)) {
      messages.push(
        `leads to a private address (${url.hostname}), which Cloudflare cannot reach; ` +
          'set via to the name of a service or VPC binding, or self-host Headgate next to the upstream',
      );
    } else if (url.protocol === 'http:') {
      messages.push(
        'is plain http, which would expose keys on the network; use https, or set via to the ' +
          'name of a service or VPC binding',
      );
    }
  }
  return messages.map((message) => ({ path: at, message }));
}

/** Finds a header of keys as the name of accounts, which would be shown. */
export function accountErrors({ account_by: by }: UpstreamConfig, path: string): FieldError[] {
  if (!by.startsWith('header:') || !CREDENTIAL_HEADERS.has(by.slice('header:'.length))) return [];
  const message = `\`${by}\` contains keys, which would be shown and may change; use a header with a permanent name of the account`;
  return [{ path: `${path}.account_by`, message }];
}

/** Warns of upstreams whose accounts are named by a header, which is trusted only from callers with a gateway key. */
export function accountWarnings({ upstreams, keys }: Pick<Config, 'upstreams' | 'keys'>): string[] {
  const ids = upstreams.flatMap(({ id, account_by: by }) => (by.startsWith('header:') ? [id] : []));
  if (ids.length === 0 || keys.length > 0) return [];
  return [
    `\`account_by\` of ${ticked(ids)} names a header, which is trusted for calls with a gateway key only, and \`keys\` is empty. ` +
      'Each provider key there counts as an account of its own. Create a gateway key.',
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
    `Upstream \`${id}\`: \`base_url\` ends with ${twice}, and its routes begin at ${twice} below it, so ` +
      `/v1/* calls ${baseUrl}${twice}/…. Shorten \`base_url\`, or set \`openai_at\` or \`anthropic_at\` to "".`,
  ];
}

/**
 * Warns of upstreams with an IP address. Workers can call host names only, and Cloudflare's edge answers such a call
 * with error 1003. A private address is an error already.
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
      `Upstream \`${id}\`: upstreams[${index}].base_url is an IP address (${hostname}), which a Worker cannot call: ` +
        'Cloudflare answers with error 1003. Use a host name, or set `via` to the name of a service or VPC binding.',
    ];
  });
}

/** Warns of stored secrets that no client can use. */
export function secretWarnings(config: Config, upstreams: ReadonlyMap<string, Upstream>): string[] {
  if (config.keys.length > 0) return [];
  const ids = [...upstreams.values()].filter(({ secret }) => secret !== null).map(({ id }) => id);
  if (ids.length === 0) return [];
  return [
    `Stored secrets are used for calls with a gateway key only, and \`keys\` is empty. Calls to ${ticked(ids)} are rejected. Create a gateway key.`,
  ];
}

/** Warns of upstreams that accept calls without a key. Routes without a slot are closed there unless listed. */
export function networkWarnings({ upstreams }: Pick<Config, 'upstreams'>): string[] {
  return upstreams.flatMap(({ id, auth, via, allow, enabled }, index) => {
    if (!enabled || allow.length > 0) return [];
    const isKeyless = auth === 'none';
    if (!isKeyless && (via === null || auth !== 'passthrough')) return [];
    const why = isKeyless ? 'needs no key' : `is reached through the binding ${via}`;
    const calls = isKeyless ? '' : ' to calls without a provider key';
    return [
      `Upstream \`${id}\` ${why}, so routes without a slot are closed${calls}, except those that list models, count ` +
        `tokens or check health. To open others, list their operations in upstreams[${index}].allow, for example \`files\` or \`models\`.`,
    ];
  });
}

/**
 * Warns of upstreams with the operator's access where every WebSocket is a session. Unknown routes are closed there.
 */
export function socketWarnings({ upstreams }: Pick<Config, 'upstreams'>): string[] {
  return upstreams.flatMap(({ id, auth, via, allow, enabled, websocket }, index) => {
    const isOwnAccess = auth !== 'passthrough' || via !== null;
    if (!enabled || websocket !== 'session' || !isOwnAccess) return [];
    if (compileGlobs(allow)(UNKNOWN_NAME)) return [];
    return [
      `Upstream \`${id}\` treats every WebSocket as a session (\`websocket: session\`) and needs no key of the caller, so sessions on unknown routes are closed. ` +
        `To open one, name its path in \`match.paths\` of a group with \`methods: [GET]\`, and list \`other\` in upstreams[${index}].allow.`,
    ];
  });
}

/** Returns a message for an unknown upstream, with similar names. */
export function unknownUpstream(name: string, known: Iterable<string>): string {
  const near = nearestNames(name, [...known]).map((each) => `\`${each}\``);
  const hint = near.length === 0 ? '' : `; did you mean ${near.join(', ')}?`;
  return `${quoteName(name)} is not an enabled upstream${hint}`;
}

/**
 * Warns of upstreams where every WebSocket is a session and groups depend on models that Headgate often cannot read.
 */
export function sessionWarnings(
  { groups, keys }: Config,
  upstreams: ReadonlyMap<string, Upstream>,
): string[] {
  const byModel = groups.filter(
    (group) =>
      group.match.models.length > 0 || group.partition_by.includes('model') || countsTokens(group),
  );
  const isLimited = keys.some((key) => key.groups.length > 0);
  return byModel.flatMap((group) =>
    upstreamsOf(group, upstreams)
      .filter(({ sockets, secret }) => {
        const mustBeTrue = secret !== null || isLimited || countsTokens(group);
        return sockets === 'any' && mustBeTrue;
      })
      .map(
        ({ id }) =>
          `Group \`${group.name}\` depends on the model, and upstream \`${id}\` treats every WebSocket as a session (\`websocket: session\`). ` +
          'Headgate can read models only on realtime routes, so it rejects sessions on other routes there. Remove `websocket: session`, or `match.models` of the group.',
      ),
  );
}

/** Warns of upstreams for turns with the default limit of connections, which may be too low for many agents. */
export function connectionNotes(document: unknown): string[] {
  const { upstreams } = Object(document) as { readonly upstreams?: unknown };
  const entries: readonly unknown[] = Array.isArray(upstreams) ? upstreams : [];
  return entries.flatMap((entry) => {
    const { id, websocket, turn_connections_each: each } = Object(entry) as Record<string, unknown>;
    if (websocket !== 'turns' || each !== undefined) return [];
    return [
      `\`turn_connections_each\` of upstream \`${String(id)}\` is not set, so one caller may have at most ${TURN_CONNECTIONS_EACH} connections for turns open there at once. ` +
        'Raise it if one key serves more agents.',
    ];
  });
}

/** Finds names of operations that never match in their place. */
export function operationErrors(config: Config): FieldError[] {
  return [
    ...config.groups.flatMap(({ match }, index) => {
      const known = namesPaths({ match }) ? ALL : COUNTED;
      return wrongNames(match.operations, `groups[${index}].match.operations`, known, [
        'takes no slot, so its calls are never counted',
        ALL,
      ]);
    }),
    ...config.keys.flatMap(({ allow }, index) =>
      notListed(allow, `keys[${index}].allow`, [...MAY_BE_LISTED, ...LEASE_RIGHTS]),
    ),
    ...config.upstreams.flatMap(({ allow }, index) =>
      notListed(allow, `upstreams[${index}].allow`, MAY_BE_LISTED),
    ),
  ];
}

/** Names by which groups match calls that take a slot. */
const COUNTED = [...LIMITED_OPERATIONS, LEASE];

/** Names of operations that the operator's key never opens, or that need not be listed. */
const NEVER_LISTED = ['realtime', 'administration', 'count_tokens', 'health'];

const MAY_BE_LISTED = [...LISTED_OPERATIONS, UNKNOWN_NAME];

const ALL = [...new Set([...LIMITED_OPERATIONS, ...MAY_BE_LISTED, ...NEVER_LISTED])];

/** Finds a name that no call with a slot can have. */
export function unknownOperation(name: string, path: string): FieldError[] {
  return wrongNames([name], path, LIMITED_OPERATIONS, ['takes no slot', ALL]).map((error) => ({
    ...error,
    path,
  }));
}

function notListed(names: readonly string[], path: string, known: readonly string[]): FieldError[] {
  const elsewhere = [...NEVER_LISTED, ...LEASE_RIGHTS];
  return wrongNames(names, path, known, ['cannot be listed here', elsewhere]);
}

function wrongNames(
  patterns: readonly string[],
  path: string,
  known: readonly string[],
  [why, elsewhere]: readonly [string, readonly string[]],
): FieldError[] {
  return patterns.flatMap((pattern, index) => {
    const matches = compileGlobs([pattern]);
    if (known.some(matches)) return [];
    const near = nearestNames(pattern, known);
    const hint =
      near.length === 0 ? `use one of ${ticked(known)}` : `did you mean ${ticked(near)}?`;
    const is = elsewhere.some(matches);
    const message = `${quoteName(pattern)} ${is ? why : 'is not a known operation'}; ${hint}`;
    return [{ path: `${path}[${index}]`, message }];
  });
}

/** Finds a receiver that must not be called. It receives names of groups and tenants. */
export function webhookErrors(
  { webhook }: Config,
  { privateUpstreams }: { readonly privateUpstreams: boolean },
): FieldError[] {
  if (webhook === null) return [];
  const where = privateUpstreams ? [] : addressErrors(webhook);
  return [...secretErrors(webhook), ...credentialErrors(webhook), ...where];
}

/** Finds credentials in the URL. `fetch` rejects such a URL, so each delivery would fail. */
function credentialErrors({ url }: WebhookConfig): FieldError[] {
  const { username, password } = new URL(url);
  if (username === '' && password === '') return [];
  const message =
    'must not contain a user name or password, because such a URL cannot be called; remove them';
  return [{ path: 'webhook.url', message }];
}

/** Finds an unsigned webhook in the generic format. Its receiver must be able to verify the sender. */
function secretErrors({ format, secret }: WebhookConfig): FieldError[] {
  if (format === 'slack' || secret !== null) return [];
  const message =
    'is required for the format generic; set the name of the secret that signs deliveries, which begins with WEBHOOK_';
  return [{ path: 'webhook.secret', message }];
}

function addressErrors(webhook: WebhookConfig): FieldError[] {
  const { protocol, hostname } = new URL(webhook.url);
  const path = 'webhook.url';
  if (protocol !== 'https:') return [{ path, message: 'must begin with https://' }];
  if (!isPrivateHost(hostname)) return [];
  return [
    {
      path,
      message: `leads to a private address (${hostname}), which Cloudflare cannot reach; use a public address`,
    },
  ];
}
