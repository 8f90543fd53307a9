import { now } from '../feed.ts';
import { clock, exact } from '../format.ts';
import type { GroupState } from '../model/group-state.ts';
import './state-word.css';

/** The state of a group in its word and its colour. */
export function StateWord(props: {
  readonly state: GroupState;
  /** When it ends by itself. Null: nobody has said. */
  readonly until?: string | null;
}) {
  const { state, until = null } = props;
  return (
    <span
      class={`state ${state.replace(' ', '-')}`}
      title={until === null ? undefined : exact(until)}
    >
      {state}
      {until !== null && ` until ${clock(until, now.value)}`}
    </span>
  );
}
