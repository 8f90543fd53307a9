import { Fragment } from 'preact';
import { LANES, type Lane } from '../../../src/core/words/ticket.ts';
import { count } from '../format.ts';
import { MARKS_MAX } from '../model/queue.ts';
import { markPath, placeIn, type Grid } from './shapes.ts';

type ByLane = Readonly<Record<Lane, number>>;

/** Few marks are large. Many are small, in two rows. */
const GRIDS: readonly (Grid & { readonly upTo: number })[] = [
  { upTo: 18, rows: 1, pitchX: 14, pitchY: 0, width: 11, height: 11, top: 3 },
  { upTo: MARKS_MAX, rows: 2, pitchX: 9, pitchY: 9, width: 7, height: 7, top: 0 },
];

/** Distance between two lanes. */
const GAP = 6;

/** Width of one lane if only counts are shown. */
const COUNT_WIDTH = 92;

/** Queued calls by lane, the next call on the left: one mark each, or a count. */
export function SmallQueue({ queued }: { readonly queued: ByLane }) {
  const lanes = LANES.filter((lane) => queued[lane] > 0);
  const grid = GRIDS.find(({ upTo }) => queued.high + queued.normal + queued.low <= upTo);
  if (grid === undefined) return <Counts lanes={lanes} queued={queued} />;
  let left = 0;
  return (
    <>
      {lanes.map((lane) => {
        const x = left;
        let path = '';
        for (let i = 0; i < queued[lane]; i += 1) {
          const [dx, y] = placeIn(grid, i);
          path += markPath(lane, x + dx, y, grid.width);
        }
        left += Math.ceil(queued[lane] / grid.rows) * grid.pitchX + GAP;
        return (
          <Fragment key={lane}>
            {x > 0 && <path class="lane-line" d={`M${x - GAP / 2 - 1} 0v17`} />}
            <path class={`mark ${lane}`} d={path} />
          </Fragment>
        );
      })}
    </>
  );
}

function Counts({ lanes, queued }: { readonly lanes: readonly Lane[]; readonly queued: ByLane }) {
  return (
    <>
      {lanes.map((lane, i) => (
        <Fragment key={lane}>
          <path class={`mark ${lane}`} d={markPath(lane, i * COUNT_WIDTH, 3, 11)} />
          <text x={i * COUNT_WIDTH + 17} y={13}>
            {`× ${count(queued[lane])}`}
          </text>
        </Fragment>
      ))}
    </>
  );
}
