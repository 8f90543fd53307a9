import {
  TOKEN_ACTOR,
  type Config,
  type GroupConfig,
  type UpstreamConfig,
} from '../contract/config/config.ts';
import { quoteName } from './import-errors.ts';
import { hasBudget } from '../routing/metered.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { PRICE_LISTS, priceListId } from '../providers/prices/price-table.ts';
import { autoGroupErrors } from './check-auto-groups.ts';
import { modelWarnings } from './check-models.ts';
import { operationErrors } from './check-operations.ts';
import { spillErrors } from './check-spill.ts';
import { compileGlobs } from '../routing/glob.ts';
import { baseUrlGlobs, baseUrlsOf, namesUpstreams, upstreamsOf } from '../routing/group-match.ts';
import { crowd } from '../routing/overlaps.ts';
import { CREDENTIAL_HEADERS } from '../routing/partition.ts';
import { GROUPS_PER_CALL_MAX } from '../routing/placement.ts';
import { isPrivateHost } from './private-address.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';

interface ConfigError {
  /** Where in the document, as in `upstreams[0].base_url`. */
  readonly path: string;
  readonly message: string;
}

export interface ConfigCheck {
  /** Contradictions. A configuration with any is refused. */
  readonly errors: readonly ConfigError[];
  /** What an operator may not expect, in full sentences. */
  readonly warnings: readonly string[];
}

export interface CheckOptions {
  /** Whether upstreams may have private addresses and plain http, as where Headgate is self-hosted. */
  readonly privateUpstreams: boolean;
}

/**
 * Finds what the schema cannot see: contradictions between the parts of a configuration that has
 * passed it, and addresses that may not be called. No message holds a credential.
 */
export function checkConfig(
  config: Config,
  builtIn: readonly Upstream[],
  options: CheckOptions,
): ConfigCheck {
  const upstreams = resolveUpstreams(config, builtIn);
  const builtInIds = new Set(builtIn.map(({ id }) => id));
  return {
    errors: [
      ...duplicates('upstreams', 'id', config.upstreams),
      ...duplicates('groups', 'name', config.groups),
      ...duplicates('auto_groups', 'name', config.auto_groups),
      ...autoGroupErrors(config, upstreams),
      ...duplicates('keys', 'id', config.keys),
      ...duplicates('keys', 'hash', config.keys),
      ...duplicates('admin_keys', 'id', config.admin_keys),
      ...duplicates('admin_keys', 'hash', config.admin_keys),
      ...adminKeyErrors(config),
      ...config.upstreams.flatMap((entry, index) =>
        upstreamErrors(entry, `upstreams[${index}]`, builtInIds, options),
      ),
      ...config.groups.flatMap((group, index) => groupErrors(group, `groups[${index}]`, upstreams)),
      ...operationErrors(config),
      ...defaultErrors(config, upstreams),
      ...webhookErrors(config, options),
    ],
    warnings: [
      ...config.upstreams.flatMap((entry) => upstreamWarnings(entry, upstreams.get(entry.id))),
      ...secretWarnings(config, upstreams),
      ...config.groups.flatMap((group) => groupWarnings(group, [...upstreams.values()])),
      ...config.groups.flatMap((group) => budgetWarnings(group, config, upstreams)),
      ...modelWarnings(config, upstreams),
      ...crowdWarnings(config),
    ],
  };
}

function duplicates<Field extends string>(
  list: string,
  field: Field,
  entries: readonly Readonly<Record<Field, string>>[],
): ConfigError[] {
  const first = new Map<string, number>();
  return entries.flatMap((entry, index) => {
    const before = first.get(entry[field]);
    if (before !== undefined) {
      const message = `is the same as ${list}[${before}].${field}; each must be different`;
      return [{ path: `${list}[${index}].${field}`, message }];
    }
    first.set(entry[field], index);
    return [];
  });
}

/** What an admin key does is in the audit log under its id, and its sessions are known by it. */
function adminKeyErrors({ admin_keys: keys }: Config): ConfigError[] {
  return keys.flatMap(({ id }, index) => {
    if (id !== TOKEN_ACTOR) return [];
    const message = 'is what the audit log calls the ADMIN_TOKEN; take another one';
    return [{ path: `admin_keys[${index}].id`, message }];
  });
}

function upstreamErrors(
  entry: UpstreamConfig,
  path: string,
  builtInIds: ReadonlySet<string>,
  { privateUpstreams }: CheckOptions,
): ConfigError[] {
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

function groupErrors(
  group: GroupConfig,
  path: string,
  upstreams: ReadonlyMap<string, Upstream>,
): ConfigError[] {
  const ids = [...upstreams.keys()];
  const unknown = group.match.upstreams.flatMap((pattern, index) => {
    if (ids.some(compileGlobs([pattern]))) return [];
    const message = `${quoteName(pattern)} names no enabled upstream`;
    return [{ path: `${path}.match.upstreams[${index}]`, message }];
  });
  const credentials = [
    ...group.partition_by.flatMap((by, index) => {
      if (!isCredential(by)) return [];
      const message = `"${by}" would write keys into the names of partitions; use api_key or caller`;
      return [{ path: `${path}.partition_by[${index}]`, message }];
    }),
    ...group.fairness.by.flatMap((by, index) => {
      if (!isCredential(by)) return [];
      const message = `"${by}" would show keys as the names of tenants; use caller`;
      return [{ path: `${path}.fairness.by[${index}]`, message }];
    }),
  ];
  const spilling = spillErrors(group, path, upstreams);
  return [...unknown, ...credentials, ...spilling];
}

function isCredential(by: string): boolean {
  return by.startsWith('header:') && CREDENTIAL_HEADERS.has(by.slice('header:'.length));
}

/** The receiver hears of groups and tenants: it is called as a stranger would be. */
function webhookErrors({ webhook }: Config, { privateUpstreams }: CheckOptions): ConfigError[] {
  if (webhook === null || privateUpstreams) return [];
  const { protocol, hostname } = new URL(webhook.url);
  const path = 'webhook.url';
  if (protocol !== 'https:') return [{ path, message: 'must begin with https://' }];
  if (!isPrivateHost(hostname)) return [];
  return [
    {
      path,
      message: `leads to a private address (${hostname}), which cannot be reached from here`,
    },
  ];
}

function defaultErrors(
  { default_upstream: id }: Config,
  upstreams: ReadonlyMap<string, Upstream>,
): ConfigError[] {
  if (id === null || upstreams.has(id)) return [];
  return [{ path: 'default_upstream', message: `${quoteName(id)} names no enabled upstream` }];
}

function upstreamWarnings(entry: UpstreamConfig, upstream: Upstream | undefined): string[] {
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

function secretWarnings(config: Config, upstreams: ReadonlyMap<string, Upstream>): string[] {
  if (config.keys.length > 0) return [];
  const ids = [...upstreams.values()].filter(({ secret }) => secret !== null).map(({ id }) => id);
  if (ids.length === 0) return [];
  return [
    `Stored secrets are used behind a gateway key only, and keys lists none: calls to ${ids.join(', ')} are refused.`,
  ];
}

function groupWarnings(group: GroupConfig, upstreams: readonly Upstream[]): string[] {
  const { name, match } = group;
  const warnings: string[] = [];
  for (const pattern of match.base_urls) {
    const matches = compileGlobs(baseUrlGlobs([pattern]));
    if (upstreams.some((upstream) => baseUrlsOf(upstream).some(matches))) continue;
    warnings.push(`Group "${name}": "${pattern}" is the base URL of no enabled upstream.`);
  }
  return warnings;
}

/** A budget refuses calls of unknown price, so of an upstream without any price it refuses all. */
function budgetWarnings(
  group: GroupConfig,
  config: Config,
  upstreams: ReadonlyMap<string, Upstream>,
): string[] {
  const { limits } = group;
  if (!hasBudget(limits) || limits.budget_usd.fallback_price !== null) return [];
  const isNamed = namesUpstreams(group);
  // Which upstreams some models are at is not known here.
  if (!isNamed && group.match.models.length > 0) return [];
  const configured = new Set(config.upstreams.map(({ id }) => id));
  const ids = upstreamsOf(group, upstreams)
    .filter((upstream) => !hasPrices(upstream))
    .map(({ id }) => id)
    .filter((id) => isNamed || configured.has(id));
  if (ids.length === 0) return [];
  return [
    `Group "${group.name}": no prices of ${ids.join(', ')} are known, so its budget refuses all calls there; ` +
      'set prices at the upstream, or limits.budget_usd.fallback_price at the group.',
  ];
}

function hasPrices(upstream: Upstream): boolean {
  return Object.keys(upstream.prices).length > 0 || priceListId(upstream) in PRICE_LISTS;
}

/** That two groups meet is normal: the call takes slots in both. */
function crowdWarnings(config: Config): string[] {
  const names = crowd(config, GROUPS_PER_CALL_MAX);
  if (names === null) return [];
  const listed = names.map((name) => `"${name}"`).join(', ');
  const automatic = names.length > GROUPS_PER_CALL_MAX ? '' : ' beside its automatic group';
  return [
    `One call may match ${listed}${automatic}: it would be refused with too_many_groups, because a ` +
      `call belongs to ${GROUPS_PER_CALL_MAX} groups at most.`,
  ];
}
