import type { Config, GroupConfig } from '../contract/config/config.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import { switchesOf, withSwitches, type Switches } from './auto-group-switches.ts';

/** Returns the entry of a group, or the switches of an automatic group without one. null if there is no such group. */
export function settingsOf(config: Config, name: string): GroupConfig | Switches | null {
  const group = config.groups.find((one) => one.name === name);
  if (group !== undefined) return group;
  return name.startsWith(AUTO_PREFIX) ? switchesOf(config, name) : null;
}

export function withSettings(config: Config, name: string, settings: unknown): Config {
  const index = config.groups.findIndex((one) => one.name === name);
  // The casts are sound: the settings come from `settingsOf`, with earlier values of these fields.
  if (index === -1) return withSwitches(config, name, settings as Switches);
  return { ...config, groups: config.groups.with(index, settings as GroupConfig) };
}
