import type { Config, GroupConfig } from '../contract/config/config.ts';

export type WithPause = Pick<Config, 'paused'>;

/** Returns the effective settings of a group. While everything is paused, no call starts, with or without a slot. */
export function inForce<Group extends GroupConfig>(group: Group, { paused }: WithPause): Group {
  return paused ? { ...group, paused: true, dry_run: false, on_unavailable: 'reject' } : group;
}
