import { useRef } from 'preact/hooks';
import { detail, detailAt, groupNamed, heardAt, now } from '../../feed.ts';
import { LargePicture } from '../../picture/large-picture.tsx';
import { Legend } from '../../picture/legend.tsx';
import { useKeptHeight } from '../../ui/use-kept-height.ts';
import { GroupCharts } from './charts/group-charts.tsx';
import { Decisions } from './decisions/decisions.tsx';
import { GroupFigures } from './group-figures.tsx';
import { GroupHead } from './group-head.tsx';
import { LeaseTable } from './lease-table.tsx';
import { PartitionRows } from './partition-rows.tsx';
import { useUsualHold } from './use-usual-hold.ts';
import { WaiterTable } from './waiter-table.tsx';
import './group.css';

/** One group: its picture, its figures, who holds and who waits, its past, its decisions. */
export function GroupPage({ name = '' }: { readonly name?: string }) {
  const group = groupNamed(name);
  if (heardAt.value === null) return <h1 aria-busy="true">{name}</h1>;
  if (group === undefined) return <NoGroup name={name} />;
  const split = group.partitions.length > 0;
  return (
    <div class="group-page" key={name}>
      <GroupHead group={group} />
      <LivePicture name={name} />
      <GroupFigures group={group} />
      {split && <PartitionRows group={group} />}
      <GroupCharts name={name} />
      <div class="lists">
        <LeaseTable name={name} isSplit={split} />
        <WaiterTable name={name} isSplit={split} isPaused={group.paused} />
      </div>
      <Decisions name={name} />
    </div>
  );
}

/** Drawn anew each second, without the rest of the page. */
function LivePicture({ name }: { readonly name: string }) {
  const group = groupNamed(name);
  const known = detail.value?.name === name ? detail.value : null;
  const usualHoldMs = useUsualHold(name, known);
  const section = useRef<HTMLElement>(null);
  useKeptHeight(section);
  if (group === undefined) return null;
  return (
    <section aria-label="Slots and queue" ref={section}>
      <LargePicture
        group={group}
        detail={known}
        sinceMs={Math.max(0, now.value - detailAt.value)}
        usualHoldMs={usualHoldMs}
      />
      <Legend detail={known} usualHoldMs={usualHoldMs} />
    </section>
  );
}

function NoGroup({ name }: { readonly name: string }) {
  return (
    <>
      <h1>{name}</h1>
      <p>
        There is no group of this name now. A group that is made by itself appears after its first
        call and goes when nobody has used it for ten minutes. <a href="/admin">All groups</a>
      </p>
    </>
  );
}
