import { count, duration } from '../../format.ts';
import { partitionName } from '../../model/decoded.ts';
import { slotsInWords } from '../../model/sentence.ts';
import { slotsOfPool } from '../../model/slots.ts';
import type { GroupView } from '../../model/status.ts';
import { refusedForLimits } from '../../../../src/core/words/signal.ts';
import { SmallPicture } from '../../picture/small-picture.tsx';

/** Pools of a partitioned group, the busiest first. */
export function PartitionRows({ group }: { readonly group: GroupView }) {
  const pressed = group.partitions.toSorted((a, b) => pressureOf(b) - pressureOf(a));
  return (
    <section aria-labelledby="partitions-title">
      <h2 id="partitions-title">
        Partitions <small>{group.partitions.length}, each with slots of its own</small>
      </h2>
      <ul class="partitions" tabIndex={0} aria-labelledby="partitions-title">
        {pressed.map((pool) => (
          <li key={pool.partition}>
            <Row pool={pool} />
          </li>
        ))}
      </ul>
    </section>
  );
}

type PartitionView = GroupView['partitions'][number];

function Row({ pool }: { readonly pool: PartitionView }) {
  const name = pool.partition ?? 'undivided';
  const shown = partitionName(name);
  if ('error' in pool) {
    return (
      <>
        <b title={name}>
          <bdi>{shown}</bdi>
        </b>
        <span role="alert">unreachable: {pool.error}</span>
      </>
    );
  }
  const slots = slotsOfPool(pool);
  return (
    <>
      <b title={name}>
        <bdi>{shown}</bdi>
      </b>
      <SmallPicture slots={slots} queue={pool} />
      <span>
        {slotsInWords(slots)}
        {pool.retired === true && ', receives no new calls'}
      </span>
      <span>{count(pool.queued)} queued</span>
      <span>p95 {duration(pool.wait_p95_ms)}</span>
      <span>429s in 1 h {count(refusedForLimits(pool.last_hour.refusals))}</span>
    </>
  );
}

function pressureOf(pool: PartitionView): number {
  return 'error' in pool ? Infinity : pool.queued * 1_000 + pool.in_use;
}
