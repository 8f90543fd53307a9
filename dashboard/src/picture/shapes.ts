import type { Lane } from '../../../src/core/words/ticket.ts';

/** Paths of the small picture. Many shapes of a kind are one path: 200 cards are drawn anew each second. */

/** Width of the picture in its own units: 16 cells of the larger kind. */
export const WIDTH = 288;

/** Height of the slots, and of the queue below. */
export const BAND = 17;

/** Places of cells or marks, filled column by column, so that what comes first is at the left. */
export interface Grid {
  readonly rows: number;
  readonly pitchX: number;
  readonly pitchY: number;
  readonly width: number;
  readonly height: number;
  /** Of the first place, from the top. */
  readonly top: number;
}

/** Left and top of the place of a number. */
export function placeIn(grid: Grid, index: number): readonly [x: number, y: number] {
  const column = Math.floor(index / grid.rows);
  return [column * grid.pitchX, grid.top + (index % grid.rows) * grid.pitchY];
}

/** Cells from one number up to another, as one path. */
export function cellsPath(grid: Grid, from: number, to: number): string {
  let path = '';
  for (let i = from; i < to; i += 1) {
    const [x, y] = placeIn(grid, i);
    path += `M${x} ${y}h${grid.width}v${grid.height}h-${grid.width}z`;
  }
  return path;
}

/** A line through each of the cells: what cools down differs from the rest without its colour too. */
export function strokesPath(grid: Grid, from: number, to: number): string {
  let path = '';
  for (let i = from; i < to; i += 1) {
    const [x, y] = placeIn(grid, i);
    path += `M${x} ${y + grid.height}l${grid.width} -${grid.height}`;
  }
  return path;
}

/** One waiter. The shape tells its lane: a diamond is high, a disc normal, a ring low. */
export function markPath(lane: Lane, x: number, y: number, size: number): string {
  const r = size / 2;
  if (lane === 'high') return `M${x} ${y + r}l${r} -${r}l${r} ${r}l-${r} ${r}z`;
  const q = lane === 'low' ? r - 1 : r;
  return `M${x + r - q} ${y + r}a${q} ${q} 0 1 1 ${2 * q} 0a${q} ${q} 0 1 1 -${2 * q} 0z`;
}
