import { useComputed } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { detail, detailAt, groupNamed, isAllReported, now } from '../../feed.ts';
import { LargePicture } from '../../picture/large-picture.tsx';
import { Legend } from '../../picture/legend.tsx';
import { useKeptHeight } from '../../ui/use-kept-height.ts';
import { GroupHead } from './group-head.tsx';
import { LeaseTable } from './lease-table.tsx';
import { MemberRows } from './member-rows.tsx';
import { ScopeRows } from './scope-rows.tsx';
import { PastSections } from './past-sections.tsx';
import { openLease } from './release.tsx';
import { useUsualHold } from './use-usual-hold.ts';
import { WaiterTable } from './waiter-table.tsx';
import './group.css';

/** Page of a group: picture, leases, queue, figures, history and decisions. */
export function GroupPage({ name = '' }: { readonly name?: string }) {
  // Subscribes only to its existence, so that the charts do not render on each update.
  const isThere = useComputed(() => groupNamed(name) !== undefined);
  if (!isAllReported.value) return <h1 aria-busy="true">{name}</h1>;
  if (!isThere.value) return <NoGroup name={name} />;
  return (
    <div class="group-page" key={name}>
      <LiveHead name={name} />
      <LivePicture name={name} />
      <div class="lists">
        <LeaseTable name={name} />
        <WaiterTable name={name} />
      </div>
      <LiveRows name={name} />
      <PastSections name={name} />
    </div>
  );
}

function LiveHead({ name }: { readonly name: string }) {
  const group = groupNamed(name);
  return group === undefined ? null : <GroupHead group={group} />;
}

function LiveRows({ name }: { readonly name: string }) {
  const group = groupNamed(name);
  if (group === undefined) return null;
  return (
    <>
      <MemberRows group={group} />
      <ScopeRows group={group} />
    </>
  );
}

/** Renders each second, separately from the rest of the page. */
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
        onOpen={(lease, ageMs) => void openLease(name, lease, ageMs)}
      />
      <Legend group={group} detail={known} usualHoldMs={usualHoldMs} />
    </section>
  );
}

function NoGroup({ name }: { readonly name: string }) {
  return (
    <>
      <h1>{name}</h1>
      <p>
        There is no group with this name. An automatic group appears with its first call, and
        disappears after ten minutes without calls. <a href="/admin">All groups</a>
      </p>
    </>
  );
}
