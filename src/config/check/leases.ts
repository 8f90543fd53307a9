import type { Config } from '../../contract/config/config.ts';
import { compileGlobs } from '../../routing/glob.ts';
import { allowsLeases, LEASE_USAGE, mayReportUsage } from '../../routing/key-access.ts';
import { LEASE } from '../../upstream/operation/operations-table.ts';

/** Warns of leases that every client may take, and of groups that match leases although no key may take any. */
export function leaseWarnings(config: Config): string[] {
  const { leases, keys, groups } = config;
  if (leases === 'open') {
    const clients = keys.length === 0 ? 'every client that reaches Headgate' : 'every gateway key';
    return [
      `\`leases: open\` lets ${clients} take all slots of a group and hold them. Use it only on a trusted network. ` +
        'Elsewhere, set `leases: keys`, and `allow: [lease]` on the keys that take leases.',
    ];
  }
  if (keys.some(allowsLeases)) return [];
  const named = groups.filter(({ match: { operations } }) =>
    operations.some((pattern) => pattern !== '*' && compileGlobs([pattern])(LEASE)),
  );
  return named.map(
    ({ name }) => `Group \`${name}\` matches leases, but no key may take any. ${HOW_TO_ALLOW}`,
  );
}

const HOW_TO_ALLOW =
  'Add `allow: [lease]` to the keys that take leases, or set `leases: open` on a trusted network.';

/**
 * Warns of a document that closes leases because it does not set `leases`. There is no warning if clients could not
 * take leases before either, unless there was no configuration.
 */
export function closedLeaseWarnings(document: unknown, before: Config, after: Config): string[] {
  const isSet = 'leases' in Object(document);
  if (isSet || isEmpty(after) || !isClosed(after)) return [];
  if (!isEmpty(before) && isClosed(before)) return [];
  return [
    `\`leases\` is not set, so \`POST /leases\` requires a key with \`allow: [lease]\`, and no key has it. ${HOW_TO_ALLOW} ` +
      'If no client takes leases, set `leases: keys` to end this warning.',
  ];
}

/**
 * Warns of keys whose `allow` includes the right to report usage only by a wildcard, which may be unintended.
 */
export function leaseUsageWarnings({ keys }: Pick<Config, 'keys'>): string[] {
  return keys
    .filter((key) => mayReportUsage(key) && !key.allow.includes(LEASE_USAGE))
    .map(
      ({ id, allow }) =>
        `Key \`${id}\`: \`allow: [${allow.join(', ')}]\` includes \`lease_usage\`, so budgets and rates count the usage that its leases report. ` +
        'List the operations that the key needs instead, or add `lease_usage` to the list to keep the right and end this warning.',
    );
}

/** Whether no client may take leases. */
function isClosed({ leases, keys }: Config): boolean {
  return leases === 'keys' && !keys.some(allowsLeases);
}

function isEmpty({ keys, groups }: Config): boolean {
  return keys.length + groups.length === 0;
}
