import type { GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { compileGlobs } from '../../routing/glob.ts';
import { baseUrlGlobs, baseUrlsOf } from '../../routing/group-match.ts';
import { CREDENTIAL_HEADERS } from '../../routing/partition.ts';
import { quoteName, type FieldError } from '../field-error.ts';

/** Finds upstreams that a group names in vain, and headers of keys by which it would tell callers apart. */
export function groupErrors(
  group: GroupConfig,
  path: string,
  upstreams: ReadonlyMap<string, Upstream>,
): FieldError[] {
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
  return [...unknown, ...credentials];
}

function isCredential(by: string): boolean {
  return by.startsWith('header:') && CREDENTIAL_HEADERS.has(by.slice('header:'.length));
}

/** Warns of base URLs that no upstream has. */
export function groupWarnings(group: GroupConfig, upstreams: readonly Upstream[]): string[] {
  const { name, match } = group;
  const warnings: string[] = [];
  for (const pattern of match.base_urls) {
    const matches = compileGlobs(baseUrlGlobs([pattern]));
    if (upstreams.some((upstream) => baseUrlsOf(upstream).some(matches))) continue;
    warnings.push(`Group "${name}": "${pattern}" is the base URL of no enabled upstream.`);
  }
  return warnings;
}
