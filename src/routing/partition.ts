import type { GroupConfig } from '../contract/config/config.ts';
import { OVERFLOW_PARTITION } from '../contract/pool-name.ts';

/** Values by which a group can be split. null counts as the value `NO_VALUE`. */
interface PartitionFacts {
  /** Fingerprint of the key that the upstream receives. */
  readonly keyFingerprint: string | null;
  readonly caller: string;
  readonly model: string | null;
  readonly upstream: { readonly id: string; readonly baseUrl: string };
  header(name: string): string | null;
}

/** Maximum used characters of a value. Clients choose some of them. */
const VALUE_LENGTH_MAX = 100;

/**
 * Maximum length of an encoded value. Three of them and a group's name stay below the 1,024 bytes up to which a Durable
 * Object can read its own name.
 */
const ENCODED_LENGTH_MAX = 300;

/** Headers whose value is a credential, which must not become part of a stored and visible name. */
export const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'x-goog-api-key',
  'api-key',
  'headgate-key',
  'cookie',
]);

/** Returns the partition of a call: the values of `partition_by`, URI-encoded. null if the group is not split. */
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

/** Name of an absent or empty value. */
const NO_VALUE = 'none';

/** A hashed value. Encoded values contain no colon, and a fingerprint is already a keyed hash. */
const HASHED_VALUE = new RegExp(
  `^(?:h:[0-9a-f]{24}|(?:own-)?(?:fp|acct)_[0-9a-f]{24}|(?:own-)?${NO_VALUE})$`,
);

/** Whether the name of a partition contains no text of clients. */
export function isHashed(partition: string): boolean {
  if (partition === OVERFLOW_PARTITION) return true;
  return partition.split(',').every((value) => HASHED_VALUE.test(value));
}

/** Prefix of the last value of a partition for calls with their own provider keys, in a group with members. */
const OWN_PREFIX = 'own-';
const OWN_VALUE = /(?:^|,)own-(?:(?:fp|acct)_[0-9a-f]{24}|none)$/;

/**
 * Returns the partition for calls with their own provider key in a group with members. No member takes such a call with
 * its key, so each key, or its account, has the limits of the group for itself.
 *
 * @param keyOrAccount name of the account, or fingerprint of the key. null without a key
 */
export function ownPartition(partition: string | null, keyOrAccount: string | null): string {
  const own = OWN_PREFIX + (keyOrAccount ?? NO_VALUE);
  return partition === null ? own : `${partition},${own}`;
}

/** Whether a partition is for calls with their own key. `encode` ensures that no other name ends like this. */
export function isOwnPartition(partition: string | null): boolean {
  return partition !== null && OWN_VALUE.test(partition);
}

/** Returns the part of a partition's name from `partition_by`. null if the group is not split. */
export function splitPartition(partition: string | null): string | null {
  if (partition === null) return null;
  const split = partition.replace(OWN_VALUE, '');
  return split === '' ? null : split;
}

/**
 * Returns the partition whose pool takes the calls of `own`, from the answer of the directory. Calls with their own
 * keys share a pool with each other, but not with calls of members.
 */
export function sharedBy(own: string, answered: string): string {
  const isShared = answered !== own && isOwnPartition(own);
  return isShared ? ownPartition(splitPartition(own), null) : answered;
}

/** Encodes a value without `#`, which ends the name of a group, and without a comma, which separates values. */
function encode(value: string | null): string {
  let encoded = '';
  // A model from a body may contain half a surrogate pair, which cannot be encoded.
  for (const character of (value ?? '').slice(0, VALUE_LENGTH_MAX).toWellFormed()) {
    const next = encodeURIComponent(character);
    if (encoded.length + next.length > ENCODED_LENGTH_MAX) break;
    encoded += next;
  }
  // Clients choose some values, and none may look like a partition of another kind.
  if (OWN_VALUE.test(encoded)) return encoded.replace('o', '%6F');
  return encoded === '' ? NO_VALUE : encoded;
}
