import type { GroupStateName } from './group-state.ts';
import type { GroupView } from './status.ts';

/** A field of a group that goes back by itself. */
export type TemporaryView = NonNullable<GroupView['temporary']>[number];

/** How long a change holds, as the routes take it. Empty: until somebody changes it again. */
export interface TemporaryChoice {
  readonly for_s?: number;
  readonly until?: string;
}

/** Maximum time of a change for a while, as the server has it. */
const FOR_MS_MAX = 31 * 86_400_000;

/** Spans that can be chosen at once. */
export const SPANS = [
  { words: 'for 15 minutes', for_s: 900 },
  { words: 'for 1 hour', for_s: 3_600 },
  { words: 'for 4 hours', for_s: 14_400 },
  { words: 'for 1 day', for_s: 86_400 },
] as const;

/** Finds when a switch of a group that is on goes off by itself. Null: it does not, or is off. */
function switchEnd(
  { temporary = [] }: Pick<GroupView, 'temporary'>,
  field: 'paused' | 'draining',
): string | null {
  return temporary.find((one) => one.field === field && one.to === true)?.until ?? null;
}

/** Finds when the state that a group is shown in ends by itself. Null: nobody has said. */
export function stateEnd(
  group: Pick<GroupView, 'temporary'>,
  state: GroupStateName,
): string | null {
  if (state === 'paused') return switchEnd(group, 'paused');
  return state === 'draining' ? switchEnd(group, 'draining') : null;
}

/** Reads what was typed as the end of a change, in the time of the reader. Null: it is over, or too far ahead. */
export function typedEnd(text: string, nowMs: number): string | null {
  const at = Date.parse(text);
  return at > nowMs && at <= nowMs + FOR_MS_MAX ? new Date(at).toISOString() : null;
}

/** Makes the patch by which a limit goes back at once. Null: the field is none. */
export function backPatch({ field, from }: TemporaryView): object | null {
  const [, name] = /^limits\.(\w+)$/.exec(field) ?? [];
  return name === undefined ? null : { limits: { [name]: from ?? null } };
}
