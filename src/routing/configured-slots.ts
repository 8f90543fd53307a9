import type { GroupConfig } from '../contract/config/config.ts';

/** Returns the slots of a group: its own limit, and at most the sum over its members. null means unlimited. */
export function configuredSlots({ limits, members }: GroupConfig): number | null {
  const ofAll = limits.max_concurrency;
  if (members.length === 0) return ofAll;
  const enabled = members.filter((member) => member.enabled);
  const ofEach = enabled.map((member) => member.limits.max_concurrency ?? Infinity);
  const slots = Math.min(
    ofAll ?? Infinity,
    ofEach.reduce((sum, each) => sum + each, 0),
  );
  return Number.isFinite(slots) ? slots : null;
}
