import type { Lane } from '../../../src/core/words/ticket.ts';

/** Paths of the small picture. Shapes of one kind share a path, because 200 cards are redrawn each second. */

/** Width of the picture in SVG units: 16 cells of the larger kind. */
export const WIDTH = 288;

/** Height of the row of slots, and of the queue below. */
export const BAND = 17;

/** Positions of cells or marks, filled column by column from the left. */
export interface Grid {
  readonly rows: number;
  readonly pitchX: number;
  readonly pitchY: number;
  readonly width: number;
  readonly height: number;
  /** Distance of the first cell from the top. */
  readonly top: number;
}

export function placeIn(grid: Grid, index: number): readonly [x: number, y: number] {
  const column = Math.floor(index / grid.rows);
  return [column * grid.pitchX, grid.top + (index % grid.rows) * grid.pitchY];
}

/** Cells `from` up to but not including `to`, as one path. */
export function cellsPath(grid: Grid, from: number, to: number): string {
  let path = '';
  for (let i = from; i < to; i += 1) {
    const [x, y] = placeIn(grid, i);
    path += `M${x} ${y}h${grid.width}v${grid.height}h-${grid.width}z`;
  }
  return path;
}

/** A stroke through each cell, so that cooling cells differ by more than their colour. */
export function strokesPath(grid: Grid, from: number, to: number): string {
  let path = '';
  for (let i = from; i < to; i += 1) {
    const [x, y] = placeIn(grid, i);
    path += `M${x} ${y + grid.height}l${grid.width} -${grid.height}`;
  }
  return path;
}

/** A queued call. The shape is its lane: a diamond is high, a disc normal, a ring low. */
export function markPath(lane: Lane, x: number, y: number, size: number): string {
  const r = size / 2;
  if (lane === 'high') return `M${x} ${y + r}l${r} -${r}l${r} ${r}l-${r} ${r}z`;
  const q = lane === 'low' ? r - 1 : r;
  return `M${x + r - q} ${y + r}a${q} ${q} 0 1 1 ${2 * q} 0a${q} ${q} 0 1 1 -${2 * q} 0z`;
}
