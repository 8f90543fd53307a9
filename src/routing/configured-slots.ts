import type { GroupConfig } from '../contract/config/config.ts';

/** Computes the slots that the configuration of a group gives it: its own limit, and all that its members have. Null: any number. */
export function configuredSlots({ limits, members }: GroupConfig): number | null {
  const ofAll = limits.max_concurrency;
  // A group that an older release has stored names none.
  const enabled = (members ?? []).filter((member) => member.enabled);
  if ((members ?? []).length === 0) return ofAll;
  const ofEach = enabled.map((member) => member.limits.max_concurrency ?? Infinity);
  const slots = Math.min(
    ofAll ?? Infinity,
    ofEach.reduce((sum, each) => sum + each, 0),
  );
  return Number.isFinite(slots) ? slots : null;
}
