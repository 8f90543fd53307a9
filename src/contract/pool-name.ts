/** Name of the object of a group or of one partition of it. `#` may not stand in a group's name. */
export function poolName(group: string, partition: string | null): string {
  return partition === null ? group : `${group}#${partition}`;
}

/** Names of automatic groups begin with this; a configured name cannot, for want of a colon. */
export const AUTO_PREFIX = 'auto:';

/**
 * Partition that the newcomers of a group with too many partitions share. No value of a caller's
 * becomes this: encoded, it has no at sign.
 */
export const OVERFLOW_PARTITION = '@overflow';
