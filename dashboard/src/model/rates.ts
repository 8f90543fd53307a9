/** The part of a minute's quantity that may go at once where nothing else is configured. */
const BURST_DEFAULT = 1 / 6;

/**
 * How much of a limit may go at once when nothing was used: the burst of a limit per minute, one
 * request at least, and all of a limit per day.
 */
export function atOnceOf(name: string, limit: number, burst: number | null): number {
  return name.endsWith('d') ? limit : Math.max(1, Math.round(limit * (burst ?? BURST_DEFAULT)));
}
