import { groups, now, trendOf } from '../../feed.ts';
import { attentionOf } from '../../model/attention.ts';
import { stateOf } from '../../model/group-state.ts';
import { StateWord } from '../../ui/state-word.tsx';

/** Where so many need somebody, it is one thing that is amiss, and the rest is below. */
const LISTED_MAX = 30;

/** Groups that somebody had better look at, the worst first. Its height is fixed: nothing below jumps. */
export function AttentionList() {
  const items = groups.value
    .flatMap((one) => {
      const group = one.value;
      const attention = attentionOf(group, trendOf(group.name), now.value);
      return attention === null ? [] : [{ group, attention }];
    })
    .sort(
      (a, b) => a.attention.rank - b.attention.rank || a.group.name.localeCompare(b.group.name),
    );
  return (
    <section class="look" aria-labelledby="attention-title">
      <h2 id="attention-title">
        Needs attention {items.length > 0 && <small>{items.length}</small>}
      </h2>
      {items.length === 0 ? (
        <p class="help">Nothing: calls flow, or wait no longer than is usual.</p>
      ) : (
        <ul tabIndex={0} aria-labelledby="attention-title">
          {items.slice(0, LISTED_MAX).map(({ group, attention }) => (
            <li key={group.name}>
              <a href={`/admin/groups/${encodeURIComponent(group.name)}`}>{group.name}</a>
              <StateWord state={stateOf(group)} />
              <span>{attention.says}</span>
            </li>
          ))}
          {items.length > LISTED_MAX && <li>{`and ${items.length - LISTED_MAX} more`}</li>}
        </ul>
      )}
    </section>
  );
}
