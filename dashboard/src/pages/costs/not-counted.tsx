import { count } from '../../format.ts';
import type { CostsView } from '../../model/costs.ts';

/** Maximum of groups that are named. */
const NAMED_MAX = 12;

/** Tells which calls are not in the figures, and how to have them counted. */
export function NotCounted({ costs }: { readonly costs: CostsView }) {
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
      {total.unreported_calls > 0 && (
        <p class="note">
          {count(total.unreported_calls)} {total.unreported_calls === 1 ? 'call has' : 'calls have'}{' '}
          an answer without usage: their tokens and cost are not known. Streams of OpenAI report
          their usage if the client sends <code>stream_options.include_usage</code>.{' '}
          <i>Track usage</i>: <code>always</code> of a group estimates the others.
        </p>
      )}
      {groups.length > 0 && (
        <details class="note">
          <summary>
            Costs are off in {groups.length === 1 ? '1 group' : `${groups.length} groups`}
          </summary>
          <p>
            <i>Track usage</i> is off there, so their calls are in these figures only where a key, a
            team or another group with a budget counts them:{' '}
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
