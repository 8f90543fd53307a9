import { CELLS_MAX, cellsOf, type Slots } from '../model/slots.ts';
import { BAND, cellsPath, placeIn, strokesPath, WIDTH, type Grid } from './shapes.ts';

/** Few cells are large. Many are small, in two rows. */
const GRIDS: readonly (Grid & { readonly upTo: number })[] = [
  { upTo: 16, rows: 1, pitchX: 18, pitchY: 0, width: 15, height: 15, top: 1 },
  { upTo: 32, rows: 1, pitchX: 9, pitchY: 0, width: 7, height: 15, top: 1 },
  { upTo: CELLS_MAX, rows: 2, pitchX: 9, pitchY: 9, width: 7, height: 7, top: 0 },
];

export function SmallSlots({ slots }: { readonly slots: Slots }) {
  const cells = cellsOf(slots);
  const grid = GRIDS.find(({ upTo }) => cells <= upTo);
  const scale = WIDTH / cells;
  let to = 0;
  const part = (kind: string, many: number, isStruck = false) => {
    const from = to;
    to += many;
    if (many === 0) return null;
    const name = `cell ${kind}`;
    if (grid === undefined) {
      return <rect class={name} x={from * scale} y={1} width={many * scale} height={15} />;
    }
    return (
      <>
        <path class={name} d={cellsPath(grid, from, to)} />
        {isStruck && <path class={`${kind}-stroke`} d={strokesPath(grid, from, to)} />}
      </>
    );
  };
  const ceilingAt = slots.ceilingAt ?? 0;
  const ceilingX =
    grid === undefined
      ? ceilingAt * scale
      : placeIn(grid, Math.ceil(ceilingAt / grid.rows) * grid.rows)[0] - 1.5;
  return (
    <>
      {part('in-use', slots.inUse)}
      {part('cooling', slots.cooling, true)}
      {part('orphaned', slots.unclaimed, true)}
      {part('prefetched', slots.lent)}
      {part('free', slots.free ?? 0)}
      {part('beyond', slots.beyond)}
      {slots.ceilingAt !== null && <path class="ceiling" d={`M${ceilingX} -2v${BAND + 4}`} />}
    </>
  );
}
