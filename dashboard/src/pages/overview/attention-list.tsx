import { groups, now, trendOf } from '../../feed.ts';
import { attentionOf, missingSecrets } from '../../model/attention.ts';
import { stateOf } from '../../model/group-state.ts';
import { stateEnd } from '../../model/temporary.ts';
import { StateWord } from '../../ui/state-word.tsx';
import { useUpstreams } from '../upstreams/use-upstreams.ts';

/**
 * Maximum of groups in the list. Where more need somebody, it is one thing that is amiss, and the rest is below.
 */
const LISTED_MAX = 30;

/** Upstreams and groups that somebody had better look at, the worst first. Its height is fixed: nothing below jumps. */
export function AttentionList() {
  const upstreams = missingSecrets(useUpstreams().upstreams ?? []);
  const items = groups.value
    .flatMap((one) => {
      const group = one.value;
      const attention = attentionOf(group, trendOf(group.name), now.value);
      return attention === null ? [] : [{ group, attention }];
    })
    .sort(
      (a, b) => a.attention.rank - b.attention.rank || a.group.name.localeCompare(b.group.name),
    );
  const total = upstreams.length + items.length;
  return (
    <section class="look" aria-labelledby="attention-title">
      <h2 id="attention-title">Needs attention {total > 0 && <small>{total}</small>}</h2>
      {total === 0 ? (
        <p class="help">Nothing: calls flow, or wait no longer than is usual.</p>
      ) : (
        <ul tabIndex={0} aria-labelledby="attention-title">
          {upstreams.map(({ id, says }) => (
            <li key={`upstream ${id} ${says}`}>
              <a href="/admin/upstreams">{id}</a>
              <span>{says}</span>
            </li>
          ))}
          {items.slice(0, LISTED_MAX).map(({ group, attention }) => (
            <li key={group.name}>
              <a href={`/admin/groups/${encodeURIComponent(group.name)}`}>{group.name}</a>
              <StateWord state={stateOf(group)} until={stateEnd(group, stateOf(group))} />
              <span>{attention.says}</span>
            </li>
          ))}
          {items.length > LISTED_MAX && <li>{`and ${items.length - LISTED_MAX} more`}</li>}
        </ul>
      )}
    </section>
  );
}
