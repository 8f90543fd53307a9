import type { GroupConfig } from '../contract/config/config.ts';
import { OVERFLOW_PARTITION } from '../contract/pool-name.ts';

/** All that a group can be split by. Null values count as one value, `NO_VALUE`. */
interface PartitionFacts {
  /** Fingerprint of the key that the upstream will see. */
  readonly keyFingerprint: string | null;
  readonly caller: string;
  readonly model: string | null;
  readonly upstream: { readonly id: string; readonly baseUrl: string };
  header(name: string): string | null;
}

/** Maximum characters of a value that take part. Callers write some of them. */
const VALUE_LENGTH_MAX = 100;

/**
 * Maximum length of a value once encoded. Three of them and a group's name stay under the 1,024 bytes up to
 * which a Durable Object is told its own name.
 */
const ENCODED_LENGTH_MAX = 300;

/** Headers whose value is a credential: it would be written into names that are stored and shown. */
export const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'x-goog-api-key',
  'api-key',
  'headgate-key',
  'cookie',
]);

/** Names the partition of a call: the values of `partition_by`, URI-encoded. Null: not split. */
export function partitionOf(
  partitionBy: GroupConfig['partition_by'],
  facts: PartitionFacts,
): string | null {
  if (partitionBy.length === 0) return null;
  return partitionBy.map((by) => encode(valueOf(by, facts))).join(',');
}

function valueOf(by: GroupConfig['partition_by'][number], facts: PartitionFacts): string | null {
  switch (by) {
    case 'api_key':
      return facts.keyFingerprint ?? facts.caller;
    case 'caller':
      return facts.caller;
    case 'model':
      return facts.model;
    case 'upstream':
      return facts.upstream.id;
    case 'base_url':
      return facts.upstream.baseUrl;
    default:
      return facts.header(by.slice('header:'.length));
  }
}

/** Name of a value that is not there, or empty. */
const NO_VALUE = 'none';

/** A value as a hashed name has it. Encoded values have no colon, and a fingerprint is a keyed hash already. */
const HASHED_VALUE = new RegExp(
  `^(?:h:[0-9a-f]{24}|(?:own-)?(?:fp|acct)_[0-9a-f]{24}|(?:own-)?${NO_VALUE})$`,
);

/** Tells whether a partition's name shows nothing of what callers wrote. */
export function isHashed(partition: string): boolean {
  if (partition === OVERFLOW_PARTITION) return true;
  return partition.split(',').every((value) => HASHED_VALUE.test(value));
}

/** How the last value of a partition begins whose calls brought keys of their own, in a group that names members. */
const OWN_PREFIX = 'own-';
const OWN_VALUE = /(?:^|,)own-(?:(?:fp|acct)_[0-9a-f]{24}|none)$/;

/**
 * Names the partition of calls that go with a provider key of their own where others go by the group's members: no
 * member takes them with their key, so each such key, or the account that it is of, has the group's limits for itself.
 *
 * @param whose name of the account, or fingerprint of the key; null: no key at all
 */
export function ownPartition(partition: string | null, whose: string | null): string {
  const own = OWN_PREFIX + (whose ?? NO_VALUE);
  return partition === null ? own : `${partition},${own}`;
}

/** Tells whether a partition is of calls with a key of their own. No other name ends so: see `encode`. */
export function isOwnPartition(partition: string | null): boolean {
  return partition !== null && OWN_VALUE.test(partition);
}

/** The part of a partition's name that the values of `partition_by` make. Null: the group is not split. */
export function splitPartition(partition: string | null): string | null {
  if (partition === null) return null;
  const split = partition.replace(OWN_VALUE, '');
  return split === '' ? null : split;
}

/**
 * The partition whose pool takes the calls of `own`, as the directory answered. Calls with keys of their own share with one
 * another, and not with calls that go by members.
 */
export function sharedBy(own: string, answered: string): string {
  const isShared = answered !== own && isOwnPartition(own);
  return isShared ? ownPartition(splitPartition(own), null) : answered;
}

/** Encodes a value, so that neither `#`, which ends a group's name, nor the comma between two values is left. */
function encode(value: string | null): string {
  let encoded = '';
  // A model from a body may hold half a surrogate pair, which cannot be encoded.
  for (const character of (value ?? '').slice(0, VALUE_LENGTH_MAX).toWellFormed()) {
    const next = encodeURIComponent(character);
    if (encoded.length + next.length > ENCODED_LENGTH_MAX) break;
    encoded += next;
  }
  // Callers write some values, and none may pass for a partition of another kind.
  if (OWN_VALUE.test(encoded)) return encoded.replace('o', '%6F');
  return encoded === '' ? NO_VALUE : encoded;
}
