import type { GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { compileGlobs } from '../../routing/glob.ts';
import { baseUrlGlobs, baseUrlsOf } from '../../routing/group-match.ts';
import { isAutomatic } from '../../routing/configured-auto-groups.ts';
import { longestTimeoutMs } from '../../routing/lane-timeouts.ts';
import { CREDENTIAL_HEADERS } from '../../routing/partition.ts';
import type { FieldError } from '../field-error.ts';
import { unknownUpstream } from './unknown-upstream.ts';

/** Finds unknown upstreams in a group, and headers of keys by which it would be split. */
export function groupErrors(
  group: GroupConfig,
  path: string,
  upstreams: ReadonlyMap<string, Upstream>,
): FieldError[] {
  const ids = [...upstreams.keys()];
  const unknown = group.match.upstreams.flatMap((pattern, index) => {
    // The name of an automatic group contains its upstream, which has a check of its own.
    if (isAutomatic(group) || ids.some(compileGlobs([pattern]))) return [];
    const message = unknownUpstream(pattern, ids);
    return [{ path: `${path}.match.upstreams[${index}]`, message }];
  });
  const credentials = [
    ...group.partition_by.flatMap((by, index) => {
      if (!isCredential(by)) return [];
      const message = `\`${by}\` would write keys into the names of partitions; use \`api_key\` or \`caller\``;
      return [{ path: `${path}.partition_by[${index}]`, message }];
    }),
    ...group.fairness.by.flatMap((by, index) => {
      if (!isCredential(by)) return [];
      const message = `\`${by}\` would show keys as the names of tenants; use \`caller\``;
      return [{ path: `${path}.fairness.by[${index}]`, message }];
    }),
  ];
  return [...unknown, ...credentials, ...methodErrors(group, path)];
}

/** Finds methods without paths, which have no effect. */
function methodErrors({ match }: GroupConfig, path: string): FieldError[] {
  if (match.methods.length === 0 || match.paths.length > 0) return [];
  const message = 'has no effect without `match.paths`; add paths, or remove this field';
  return [{ path: `${path}.match.methods`, message }];
}

function isCredential(by: string): boolean {
  return by.startsWith('header:') && CREDENTIAL_HEADERS.has(by.slice('header:'.length));
}

/** Silence after which clients (Node's fetch) close a connection. Cloudflare's edge follows at 400 s. */
const SILENCE_MAX_MS = 300_000;

/** Warns of waits that are longer than a silent connection lasts. */
export function silenceWarnings(group: GroupConfig): string[] {
  const { name, queue } = group;
  const { after_ms: afterMs } = queue.keepalive;
  const isKeptAlive = afterMs !== null && afterMs <= SILENCE_MAX_MS;
  if (longestTimeoutMs(group) <= SILENCE_MAX_MS || isKeptAlive) return [];
  const keepalive =
    afterMs === null
      ? 'not set, so only streams get comments, after 200 s'
      : 'above that limit too';
  const field =
    queue.timeout_ms > SILENCE_MAX_MS
      ? '`queue.timeout_ms`'
      : 'a time-out in `queue.lane_timeouts_ms`';
  return [
    `Group \`${name}\`: ${field} is above 300 s, and \`queue.keepalive.after_ms\` is ${keepalive}. Connections that are ` +
      "silent for so long are closed by clients (Node's fetch after 300 s) or by Cloudflare's edge (400 s). Set " +
      '`queue.keepalive.after_ms` to 60000, and a shorter `queue.timeout_ms` if calls do not stream.',
  ];
}

/** Warns of base URLs that match no upstream. */
export function groupWarnings(group: GroupConfig, upstreams: readonly Upstream[]): string[] {
  const { name, match } = group;
  const warnings: string[] = [];
  for (const pattern of match.base_urls) {
    const matches = compileGlobs(baseUrlGlobs([pattern]));
    if (upstreams.some((upstream) => baseUrlsOf(upstream).some(matches))) continue;
    warnings.push(
      `Group \`${name}\`: \`${pattern}\` is the base URL of no enabled upstream, so no call matches it. Correct \`match.base_urls\`.`,
    );
  }
  return warnings;
}
