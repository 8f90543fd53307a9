import type { Config, GroupConfig } from '../contract/config/config.ts';

/** Absent: the configuration of a release that knew no pause of everything. */
export type WithPause = Partial<Pick<Config, 'paused'>>;

/** Reads a group as it is in force: while everything is paused no call gets a slot, or gets by without one. */
export function inForce<Group extends GroupConfig>(
  group: Group,
  { paused = false }: WithPause,
): Group {
  return paused ? { ...group, paused: true, dry_run: false, on_unavailable: 'reject' } : group;
}
