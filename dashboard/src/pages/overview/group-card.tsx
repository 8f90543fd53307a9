import type { ReadonlySignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { count, duration } from '../../format.ts';
import { slotsInWords } from '../../model/sentence.ts';
import { slotsOfGroup } from '../../model/slots.ts';
import type { GroupView } from '../../model/status.ts';
import { refusedForLimits } from '../../../../src/core/words/signal.ts';
import { SmallPicture } from '../../picture/small-picture.tsx';
import { Sparkline } from '../../picture/sparkline.tsx';
import { StateWord } from '../../ui/state-word.tsx';
import { useInSight } from '../../ui/in-sight.ts';

/** Card of a group: picture, waits and upstream refusals. It renders on each update while it is in view. */
export function GroupCard({ group: live }: { readonly group: ReadonlySignal<GroupView> }) {
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
      <StateWord group={group} />
      <SmallPicture slots={slots} queue={group} />
      <div class="beside">
        <span>{slotsInWords(slots)}</span>
        <span>{group.queued === 0 ? '' : `${count(group.queued)} queued`}</span>
      </div>
      <Waits group={group} />
      <Refusals group={group} />
    </article>
  );
}

function Waits({ group }: { readonly group: GroupView }) {
  const { wait_p50_ms: p50, wait_p95_ms: p95 } = group;
  return (
    <p class="figure" title="Wait time of calls granted in the last five minutes">
      wait p50 <b>{duration(p50)}</b> p95 <b>{duration(p95)}</b>{' '}
      <Sparkline
        kind="line"
        values={group.last_hour.steps.wait_p95_ms}
        unknown={unknownSteps(group)}
        name={`p95 wait in the last hour, now ${duration(p95)}`}
      />
    </p>
  );
}

function Refusals({ group }: { readonly group: GroupView }) {
  const { refusals, steps } = group.last_hour;
  const kinds = Object.entries(refusals).map(([kind, n]) => `${kind} ${n}`);
  return (
    <p class="figure" title={`Upstream refusals in the last hour: ${kinds.join(', ') || 'none'}`}>
      429s in 1 h <b>{count(refusedForLimits(refusals))}</b>{' '}
      <Sparkline
        kind="bars"
        values={steps.refused}
        unknown={unknownSteps(group)}
        name="429s in the last hour, per five minutes"
      />
    </p>
  );
}

/** Number of steps in the last hour before the group recorded anything. */
function unknownSteps({ last_hour: { steps } }: GroupView): number {
  const known = steps.refused.findIndex((value) => value !== null);
  return known === -1 ? steps.refused.length : known;
}
