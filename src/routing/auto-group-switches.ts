import type { AutoGroupConfig, Config } from '../contract/config/config.ts';

import type { WithPause } from './everything-paused.ts';

type WithAutoGroups = Pick<Config, 'auto_groups'>;

export type Switches = Pick<AutoGroupConfig, 'paused' | 'draining'>;

/** Returns the switches of an automatic group. One that is not listed is open. */
export function switchesOf({ auto_groups: all }: WithAutoGroups, name: string): Switches {
  const { paused, draining } = all.find((one) => one.name === name) ?? {};
  return { paused: paused ?? false, draining: draining ?? false };
}

/** Returns the effective switches: with everything paused, each group is paused. */
export function switchesInForce(config: WithAutoGroups & WithPause, name: string): Switches {
  const own = switchesOf(config, name);
  return { ...own, paused: own.paused || config.paused };
}

export function heldAutoGroups({ auto_groups: all }: WithAutoGroups): string[] {
  return all.filter(isHeld).map(({ name }) => name);
}

export function isHeld({ paused, draining }: Switches): boolean {
  return paused || draining;
}

/** Sets the switches of one automatic group. A group that is open and has no other setting needs no entry. */
export function withSwitches<Document extends WithAutoGroups>(
  config: Document,
  name: string,
  switches: Switches,
): Document {
  const { auto_groups: all } = config;
  const index = all.findIndex((one) => one.name === name);
  const { on_saturated: does } = all[index] ?? {};
  const entry = { name, ...switches, ...(does === undefined ? {} : { on_saturated: does }) };
  if (!isHeld(switches) && does === undefined) {
    return { ...config, auto_groups: all.filter((one) => one.name !== name) };
  }
  return { ...config, auto_groups: index === -1 ? [...all, entry] : all.with(index, entry) };
}
