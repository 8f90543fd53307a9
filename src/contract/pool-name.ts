/** Name of the object of a group, or of one of its partitions. The name of a group cannot contain `#`. */
export function poolName(group: string, partition: string | null): string {
  return partition === null ? group : `${group}#${partition}`;
}

/** Prefix of the names of automatic groups. No other group has it. */
export const AUTO_PREFIX = 'auto:';

/**
 * Partition that further values of a group with too many partitions share. It cannot collide with the value of a
 * caller, because encoding removes the at sign.
 */
export const OVERFLOW_PARTITION = '@overflow';

interface NamedPool {
  readonly group: string;
  readonly partition: string | null;
}

/**
 * Whether a pool exists because of a value that a caller sent. Callers can make up values, so such a pool stores
 * nothing before its first success.
 */
export function isVerifiedLater({ partition }: NamedPool): boolean {
  return partition !== null && partition !== OVERFLOW_PARTITION;
}

/** Whether that value is a provider key. The success that verifies the key also verifies its pool. */
export function isOfProviderKey(pool: NamedPool): boolean {
  return pool.group.startsWith(AUTO_PREFIX) && isVerifiedLater(pool);
}
