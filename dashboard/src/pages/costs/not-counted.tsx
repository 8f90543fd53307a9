import { count } from '../../format.ts';
import type { Costs } from '../../model/costs.ts';

/** Maximum of groups that are named. */
const NAMED_MAX = 12;

/** Tells which calls are not in the figures, and how to have them counted. */
export function NotCounted({ costs }: { readonly costs: Costs }) {
  const { total, not_metered: groups, unreachable } = costs;
  const more = groups.length - NAMED_MAX;
  return (
    <>
      {total.unpriced_calls > 0 && (
        <p class="note">
          {count(total.unpriced_calls)} {total.unpriced_calls === 1 ? 'call has' : 'calls have'} a
          model without a known price: the tokens count, and the cost is not known. Set{' '}
          <code>prices</code> at the upstream.
        </p>
      )}
      {groups.length > 0 && (
        <details class="note">
          <summary>
            {groups.length === 1 ? '1 group counts' : `${groups.length} groups count`} no cost
          </summary>
          <p>
            Calls there are in these figures only where their key, team or another group counts
            them. A group counts with a budget, or with <i>Track usage</i> among its settings:{' '}
            {groups.slice(0, NAMED_MAX).map((name, at) => (
              <>
                {at > 0 && ', '}
                <a href={`/admin/groups/${encodeURIComponent(name)}/edit`}>{name}</a>
              </>
            ))}
            {more > 0 && ` and ${more} more`}.
          </p>
        </details>
      )}
      {unreachable.length > 0 && (
        <p class="note">
          {unreachable.length === 1 ? '1 pool' : `${unreachable.length} pools`} did not answer: what
          they said up to 10 minutes ago is counted.
        </p>
      )}
    </>
  );
}
