import { CELLS_MAX, cellsOf, type Slots } from '../model/slots.ts';
import { BAND, cellsPath, placeIn, strokesPath, WIDTH, type Grid } from './shapes.ts';

/** Few cells are large; many are small, in two rows. */
const GRIDS: readonly (Grid & { readonly upTo: number })[] = [
  { upTo: 16, rows: 1, pitchX: 18, pitchY: 0, width: 15, height: 15, top: 1 },
  { upTo: 32, rows: 1, pitchX: 9, pitchY: 0, width: 7, height: 15, top: 1 },
  { upTo: CELLS_MAX, rows: 2, pitchX: 9, pitchY: 9, width: 7, height: 7, top: 0 },
];

/** The slots of a pool: a cell each, or a bar. */
export function SmallSlots({ slots }: { readonly slots: Slots }) {
  const cells = cellsOf(slots);
  const grid = GRIDS.find(({ upTo }) => cells <= upTo);
  if (grid === undefined) return <Bar slots={slots} cells={cells} />;
  const cooling = slots.inUse + slots.cooling;
  const free = cooling + (slots.free ?? 0);
  const [ceilingX] = placeIn(grid, Math.ceil((slots.ceilingAt ?? 0) / grid.rows) * grid.rows);
  return (
    <>
      <path class="cell in-use" d={cellsPath(grid, 0, slots.inUse)} />
      {slots.cooling > 0 && (
        <>
          <path class="cell cooling" d={cellsPath(grid, slots.inUse, cooling)} />
          <path class="cooling-stroke" d={strokesPath(grid, slots.inUse, cooling)} />
        </>
      )}
      <path class="cell free" d={cellsPath(grid, cooling, free)} />
      {slots.beyond > 0 && <path class="cell beyond" d={cellsPath(grid, free, cells)} />}
      {slots.ceilingAt !== null && <path class="ceiling" d={`M${ceilingX - 1.5} -2v${BAND + 4}`} />}
    </>
  );
}

function Bar({ slots, cells }: { readonly slots: Slots; readonly cells: number }) {
  const scale = WIDTH / cells;
  const inUse = slots.inUse * scale;
  const cooling = slots.cooling * scale;
  const free = (slots.free ?? 0) * scale;
  return (
    <>
      <rect class="cell free" x={0} y={1} width={inUse + cooling + free} height={15} />
      <rect class="cell in-use" x={0} y={1} width={inUse} height={15} />
      {cooling > 0 && <rect class="cell cooling" x={inUse} y={1} width={cooling} height={15} />}
      {slots.beyond > 0 && (
        <rect
          class="cell beyond"
          x={inUse + cooling + free}
          y={1}
          width={slots.beyond * scale}
          height={15}
        />
      )}
      {slots.ceilingAt !== null && (
        <path class="ceiling" d={`M${slots.ceilingAt * scale} -2v${BAND + 4}`} />
      )}
    </>
  );
}
