import { count } from '../../format.ts';
import { useOf } from '../../model/group-state.ts';
import { slotsOfGroup } from '../../model/slots.ts';
import { suggestedWords } from '../../model/suggestions.ts';
import type { GroupView } from '../../model/status.ts';

export function GroupChip({ group }: { readonly group: GroupView }) {
  const { configured, source } = group.limit;
  const share = Math.min(1, useOf(group));
  return (
    <li>
      <a class="chip" href={`/admin/groups/${encodeURIComponent(group.name)}`}>
        <span class="fill" style={{ width: `${Math.round(100 * share)}%` }} />
        {group.name}{' '}
        <b>
          {group.in_use}/{count(slotsOfGroup(group).capacity)}
        </b>
        {source === 'learned' && <small> learned, of {count(configured)}</small>}
      </a>
    </li>
  );
}

export function GroupRates({ group: { name, rates } }: { readonly group: GroupView }) {
  const limits = Object.entries(rates ?? {});
  if (limits.length === 0) return null;
  const words = limits.map(
    ([rate, { limit, left }]) => `${count(left)} of ${count(limit)} ${rate}`,
  );
  return (
    <li class="rates help">
      {name}: {words.join(', ')} left
    </li>
  );
}

/** Limits that the upstream reported to a group in headers, by model. */
export function GroupSeen(props: { readonly group: GroupView; readonly upstream: string }) {
  const { name, limits_seen: all = [] } = props.group;
  const seen = all.filter(({ upstream }) => upstream === props.upstream);
  if (seen.length === 0) return null;
  return (
    <li class="rates help">
      {name}, seen in headers:{' '}
      {seen.map(({ model, limits }, index) => (
        <span key={model}>
          {index > 0 && '; '}
          <bdi>{model ?? 'no model'}</bdi> {suggestedWords(limits)}
        </span>
      ))}
    </li>
  );
}
