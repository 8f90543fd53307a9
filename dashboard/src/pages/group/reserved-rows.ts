/** Maximum of reserved rows, which fills a screen. */
const RESERVED_MAX = 8;

/** Reserves the height of expected rows, so that content below does not move when they arrive. */
export function reservedRows(expected: number | null | undefined): Record<string, string> {
  return { '--rows': String(Math.min(RESERVED_MAX, expected ?? RESERVED_MAX)) };
}
