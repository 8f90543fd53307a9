/** Default burst: the part of a per-minute limit that is available at once. */
const BURST_DEFAULT = 1 / 6;

/**
 * Amount of an unused limit that is available at once: the burst (at least 1) of a per-minute limit, and all of a
 * per-day limit.
 */
export function atOnceOf(name: string, limit: number, burst: number | null): number {
  return name.endsWith('d') ? limit : Math.max(1, Math.round(limit * (burst ?? BURST_DEFAULT)));
}
