import { plural } from '../../format.ts';
import type { CostsView } from '../../model/costs.ts';

const NAMED_MAX = 12;

/** Calls that the costs do not include, and how to include them. */
export function NotCounted({ costs }: { readonly costs: CostsView }) {
  const { total, not_metered: groups, unreachable } = costs;
  const more = groups.length - NAMED_MAX;
  return (
    <>
      {total.unpriced_calls > 0 && (
        <p class="note">
          {plural(total.unpriced_calls, 'call')} used a model without a known price. Their tokens
          are counted, but their cost is unknown. To count it, set <code>prices</code> at the
          upstream.
        </p>
      )}
      {total.unreported_calls > 0 && (
        <p class="note">
          {plural(total.unreported_calls, 'call')} had a response without usage. Their tokens and
          cost are unknown. OpenAI streams report usage if the client sends{' '}
          <code>stream_options.include_usage</code>. To estimate the others, set <i>Track usage</i>{' '}
          to <code>always</code> in the group.
        </p>
      )}
      {groups.length > 0 && (
        <details class="note">
          <summary>Costs are not tracked in {plural(groups.length, 'group')}</summary>
          <p>
            <i>Track usage</i> is off there. The costs include their calls only if a key, a team or
            another group with a budget counts them:{' '}
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
          {plural(unreachable.length, 'pool')} did not respond. The costs include what{' '}
          {unreachable.length === 1 ? 'it' : 'they'} reported up to 10 minutes ago.
        </p>
      )}
    </>
  );
}
