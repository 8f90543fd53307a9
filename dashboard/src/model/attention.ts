import type { Attention } from '../../../src/contract/attention.ts';
import { ATTENTION_RULES, type AttentionRule } from '../../../src/contract/attention-rules.ts';

/** These say no more than the state of the group in its word, its queue and its pause. */
const PLAIN: ReadonlySet<AttentionRule> = new Set([
  'paused',
  'upstream_pause',
  'partly_stopped',
  'queue_old',
]);

/** Finds the worst entry of a group. null: there is none. */
export function attentionOf(all: readonly Attention[], group: string): Attention | null {
  return all.find((one) => one.group === group) ?? null;
}

/** The rank of a group among all: less is worse. */
export function rankOf(all: readonly Attention[], group: string): number {
  const entry = attentionOf(all, group);
  return entry === null ? Infinity : ATTENTION_RULES.indexOf(entry.rule);
}

/** The line below the name on the page of a group: the cause that its state does not say. */
export function attentionLine(all: readonly Attention[], group: string): string {
  const entry = all.find((one) => one.group === group && !PLAIN.has(one.rule));
  return entry === undefined ? '' : entry.says;
}

/** The page where something can be done about an entry. */
export function pageOf({ subject: { kind, id }, group, rule }: Attention): string {
  if (group !== null) return `/admin/groups/${encodeURIComponent(group)}`;
  if (kind === 'key') return '/admin/keys';
  if (kind === 'team') return '/admin/keys#teams';
  if (kind === 'upstream') return '/admin/upstreams';
  if (rule === 'config_warning' || id === 'webhook') return '/admin/config';
  return '/admin/calls';
}
