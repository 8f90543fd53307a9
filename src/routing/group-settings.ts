import type { Config, GroupConfig } from '../contract/config/config.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import { switchesOf, withSwitches, type Switches } from './auto-group-switches.ts';

/** Finds what is set of a group: its entry, or the switches of an automatic one without any. Null: there is no such group. */
export function settingsOf(config: Config, name: string): GroupConfig | Switches | null {
  const group = config.groups.find((one) => one.name === name);
  if (group !== undefined) return group;
  return name.startsWith(AUTO_PREFIX) ? switchesOf(config, name) : null;
}

/** Puts settings in the place of those that there are. */
export function withSettings(config: Config, name: string, settings: unknown): Config {
  const index = config.groups.findIndex((one) => one.name === name);
  // The casts are sound: they are what `settingsOf` gave, with values that these fields had before.
  if (index === -1) return withSwitches(config, name, settings as Switches);
  return { ...config, groups: config.groups.with(index, settings as GroupConfig) };
}
