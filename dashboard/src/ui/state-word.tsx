import { now } from '../feed.ts';
import { clock, exact } from '../format.ts';
import { isLearned, stateDetail } from '../model/group-state.ts';
import type { GroupView } from '../model/status.ts';
import { stateEnd } from '../model/temporary.ts';
import './state-word.css';

/** State of a group with its end and details, and whether the limit is learned. */
export function StateWord({ group }: { readonly group: GroupView }) {
  const { state } = group;
  const detail = stateDetail(group);
  const until = stateEnd(group, state);
  return (
    <span class="states">
      <span
        class={`state ${state.replaceAll(' ', '-')}`}
        title={until === null ? undefined : exact(until)}
      >
        {state}
        {until !== null && ` until ${clock(until, now.value)}`}
        {detail !== null && (
          <small>
            {' '}
            <bdi>{detail}</bdi>
          </small>
        )}
      </span>
      {isLearned(group) && (
        <span class="learned" title="The limit was learned from the upstream">
          learned
        </span>
      )}
    </span>
  );
}
