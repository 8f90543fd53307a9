import { now } from '../feed.ts';
import { clock, exact } from '../format.ts';
import { isLearned, stateDetail } from '../model/group-state.ts';
import type { GroupView } from '../model/status.ts';
import { stateEnd } from '../model/temporary.ts';
import './state-word.css';

/** The state of a group in its word and its colour, when it ends by itself, what more there is to it, and whether its limit is learned. */
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
        <span class="learned" title="Its limit is what the upstream has shown to take">
          learned
        </span>
      )}
    </span>
  );
}
