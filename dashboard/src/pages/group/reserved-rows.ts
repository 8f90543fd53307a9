/** Maximum of rows that are kept free before they are there: a screen has more below. */
const RESERVED_MAX = 8;

/** Keeps a list as high as its rows will make it, so that what stands below does not move when they come. */
export function reservedRows(expected: number | null | undefined): Record<string, string> {
  return { '--rows': String(Math.min(RESERVED_MAX, expected ?? RESERVED_MAX)) };
}
