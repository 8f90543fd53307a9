import type { Attention } from '../../../src/contract/attention.ts';
import { ATTENTION_RULES, type AttentionRule } from '../../../src/contract/status-words.ts';

/** Rules that add nothing to the state, the queue and the pause that a group shows anyway. */
const PLAIN: ReadonlySet<AttentionRule> = new Set([
  'paused',
  'upstream_pause',
  'partly_stopped',
  'queue_old',
]);

/** Most severe entry of a group. null if there is none. */
export function attentionOf(all: readonly Attention[], group: string): Attention | null {
  return all.find((one) => one.group === group) ?? null;
}

/** Severity rank of a group. Lower is worse. */
export function rankOf(all: readonly Attention[], group: string): number {
  const entry = attentionOf(all, group);
  return entry === null ? Infinity : ATTENTION_RULES.indexOf(entry.rule);
}

/** Cause shown below the name on the page of a group, if its state does not show it already. */
export function attentionLine(all: readonly Attention[], group: string): string {
  const entry = all.find((one) => one.group === group && !PLAIN.has(one.rule));
  return entry === undefined ? '' : entry.says;
}

/** Page on which an entry can be resolved. */
export function pageOf({ subject: { kind, id }, group, rule }: Attention): string {
  if (group !== null) return `/admin/groups/${encodeURIComponent(group)}`;
  if (kind === 'key') return '/admin/keys';
  if (kind === 'team') return '/admin/keys#teams';
  if (kind === 'upstream') return '/admin/upstreams';
  if (rule === 'config_warning' || id === 'webhook') return '/admin/config';
  return '/admin/calls';
}
