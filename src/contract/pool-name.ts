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

/**
 * Whether a pool is made by whatever key somebody sends. Such a one keeps nothing until its key's first
 * success: whoever makes keys up would fill the storage otherwise, a pool for each.
 */
export function isProvedLater({
  group,
  partition,
}: {
  readonly group: string;
  readonly partition: string | null;
}): boolean {
  return group.startsWith(AUTO_PREFIX) && partition !== null && partition !== OVERFLOW_PARTITION;
}
