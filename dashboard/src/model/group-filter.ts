import { partitionName } from './decoded.ts';
import type { GroupStateName } from './group-state.ts';
import type { GroupView } from './status.ts';

export interface GroupFilter {
  /** Words that must all occur in the name, a partition, or the models and upstreams of the group. */
  readonly text: string;
  readonly state: GroupStateName | 'all';
  readonly kind: GroupView['kind'] | 'all';
}

export const NO_FILTER: GroupFilter = { text: '', state: 'all', kind: 'all' };

export const KINDS = ['configured', 'automatic', 'key', 'team', 'retired'] as const;

export function isNarrow({ text, state, kind }: GroupFilter): boolean {
  return text.trim() !== '' || state !== 'all' || kind !== 'all';
}

/** Whether a group matches a filter. `matches` are the models and upstreams of its configuration. */
export function isSought(
  filter: GroupFilter,
  group: GroupView,
  matches: readonly string[],
): boolean {
  if (filter.kind !== 'all' && group.kind !== filter.kind) return false;
  if (filter.state !== 'all' && group.state !== filter.state) return false;
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const partitions = group.partitions.flatMap(({ partition }) =>
    partition === null ? [] : [partition, partitionName(partition)],
  );
  const texts = [group.name, ...partitions, ...matches].map((text) => text.toLowerCase());
  return words.every((word) => texts.some((text) => text.includes(word)));
}
