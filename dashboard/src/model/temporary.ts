import type { GroupStateName } from './group-state.ts';
import type { GroupView } from './status.ts';

/** A field of a group that reverts automatically. */
export type TemporaryView = NonNullable<GroupView['temporary']>[number];

/** Duration of a change, as the API accepts it. Empty means until the next change. */
export interface TemporaryChoice {
  readonly for_s?: number;
  readonly until?: string;
}

/** Maximum duration of a temporary change, as on the server. */
const FOR_MS_MAX = 31 * 86_400_000;

export const SPANS = [
  { words: 'for 15 minutes', for_s: 900 },
  { words: 'for 1 hour', for_s: 3_600 },
  { words: 'for 4 hours', for_s: 14_400 },
  { words: 'for 1 day', for_s: 86_400 },
] as const;

/** When a switch that is on reverts automatically. null if it does not, or is off. */
function switchEnd(
  { temporary = [] }: Pick<GroupView, 'temporary'>,
  field: 'paused' | 'draining',
): string | null {
  return temporary.find((one) => one.field === field && one.to === true)?.until ?? null;
}

/** When the shown state of a group ends automatically. null if it has no end. */
export function stateEnd(
  group: Pick<GroupView, 'temporary'>,
  state: GroupStateName,
): string | null {
  if (state === 'paused') return switchEnd(group, 'paused');
  return state === 'draining' ? switchEnd(group, 'draining') : null;
}

/** Parses the typed end of a change, in the time zone of the reader. null if it is past or too far ahead. */
export function typedEnd(text: string, nowMs: number): string | null {
  const at = Date.parse(text);
  return at > nowMs && at <= nowMs + FOR_MS_MAX ? new Date(at).toISOString() : null;
}

/** Patch that reverts a limit immediately. null if the field is no limit. */
export function backPatch({ field, from }: TemporaryView): object | null {
  const [, name] = /^limits\.(\w+)$/.exec(field) ?? [];
  return name === undefined ? null : { limits: { [name]: from ?? null } };
}
