/**
 * Slots of a pool or group that are not free.
 *
 * @param pool the fields of its status
 */
export function slotsTaken(pool: {
  readonly in_use: number;
  readonly cooling: number;
  readonly unclaimed: number;
  readonly lent: number;
}): number {
  return pool.in_use + pool.cooling + pool.unclaimed + pool.lent;
}
