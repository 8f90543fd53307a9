import type { GroupState } from '../model/group-state.ts';
import './state-word.css';

/** The state of a group in its word and its colour. */
export function StateWord({ state }: { readonly state: GroupState }) {
  return <span class={`state ${state.replace(' ', '-')}`}>{state}</span>;
}
