import type { ReadonlySignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { trendOf } from '../../feed.ts';
import { count, duration } from '../../format.ts';
import { stateOf } from '../../model/group-state.ts';
import { stateEnd } from '../../model/temporary.ts';
import { slotsInWords } from '../../model/sentence.ts';
import { slotsOfGroup } from '../../model/slots.ts';
import type { GroupStatus } from '../../model/status.ts';
import { lately, refusedTotal } from '../../model/trend.ts';
import { SmallPicture } from '../../picture/small-picture.tsx';
import { Sparkline } from '../../picture/sparkline.tsx';
import { StateWord } from '../../ui/state-word.tsx';
import { useInSight } from '../../ui/in-sight.ts';

/**
 * One group: its picture, how long calls wait, what the upstream refuses. Drawn anew with each word of
 * the feed while it is in sight, and once when it comes in sight.
 */
export function GroupCard({ group: live }: { readonly group: ReadonlySignal<GroupStatus> }) {
  const root = useRef<HTMLElement>(null);
  const group = useInSight(root).value ? live.value : live.peek();
  const slots = slotsOfGroup(group);
  const id = `card-${group.name}`;
  return (
    <article class="card" aria-labelledby={id} ref={root}>
      <h3 id={id}>
        <a href={`/admin/groups/${encodeURIComponent(group.name)}`}>{group.name}</a>
        {group.kind !== 'configured' && <small>{group.kind}</small>}
      </h3>
      <StateWord state={stateOf(group)} until={stateEnd(group, stateOf(group))} />
      <SmallPicture slots={slots} queue={group} />
      <div class="beside">
        <span>{slotsInWords(slots)}</span>
        <span>{group.queued === 0 ? '' : `${count(group.queued)} waiting`}</span>
      </div>
      <Waits group={group} />
      <Refusals group={group} />
    </article>
  );
}

function Waits({ group }: { readonly group: GroupStatus }) {
  const { wait_p50_ms: p50, wait_p95_ms: p95 } = group;
  const steps = trendOf(group.name)?.steps ?? [];
  return (
    <p class="figure" title="Waits of the calls granted in the last five minutes">
      wait p50 <b>{duration(p50)}</b> p95 <b>{duration(p95)}</b>{' '}
      <Sparkline
        kind="line"
        values={steps.map(({ waitP95Ms }) => waitP95Ms)}
        name={`p95 of waits, now ${duration(p95)}`}
      />
    </p>
  );
}

function Refusals({ group }: { readonly group: GroupStatus }) {
  const trend = trendOf(group.name);
  const total = refusedTotal(group);
  const recent = lately(trend, 'refused');
  const kinds = Object.entries(group.refusals_total).map(([kind, n]) => `${kind} ${n}`);
  return (
    <p
      class="figure"
      title={`Refusals of the upstream since the group's object started: ${kinds.join(', ') || 'none'}`}
    >
      429s <b>{count(total)}</b>{' '}
      <Sparkline
        kind="bars"
        values={(trend?.steps ?? []).map(({ refused }) => refused)}
        name={`429s in the last minutes: ${recent}`}
      />
    </p>
  );
}
