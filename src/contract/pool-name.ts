/** Name of the object of a group or of one partition of it. `#` may not stand in a group's name. */
export function poolName(group: string, partition: string | null): string {
  return partition === null ? group : `${group}#${partition}`;
}

/** Names of automatic groups begin with this, and no others. */
export const AUTO_PREFIX = 'auto:';

/**
 * Partition that the newcomers of a group with too many partitions share. No value of a caller's
 * becomes this: encoded, it has no at sign.
 */
export const OVERFLOW_PARTITION = '@overflow';

interface NamedPool {
  readonly group: string;
  readonly partition: string | null;
}

/**
 * Whether a pool exists because of a value that a caller sent. Callers can make up values, so nothing of such a pool stays
 * before its first success.
 */
export function isVerifiedLater({ partition }: NamedPool): boolean {
  return partition !== null && partition !== OVERFLOW_PARTITION;
}

/** Whether that value is a provider key, which is proved with its pool. */
export function isOfProviderKey(pool: NamedPool): boolean {
  return pool.group.startsWith(AUTO_PREFIX) && isVerifiedLater(pool);
}
