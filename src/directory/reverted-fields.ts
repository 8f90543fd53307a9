import { checkConfig, type CheckOptions } from '../config/check-config.ts';
import { pathText, withFieldAt } from '../config/field-paths.ts';
import { configSchema, type Config } from '../contract/config/config.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { settingsOf, withSettings } from '../routing/group-settings.ts';
import type { TemporaryEntry } from './temporary-list.ts';

/** Actor of the directory's own changes. No admin key can have this id. */
export const OWN_ACTOR = 'headgate:directory';

export interface RevertedField {
  /** The new configuration, or null if no field is reverted. */
  readonly config: Config | null;
  /** Text for the audit log. */
  readonly action: string;
  /** Reverted fields, as text. */
  readonly back: readonly string[];
  /** Fields that are not reverted, each with its reason. */
  readonly stays: readonly string[];
}

/** Reverts fields of one group that still have their temporary value. */
export function revertFields(
  config: Config,
  due: readonly [TemporaryEntry, ...TemporaryEntry[]],
  options: CheckOptions,
): RevertedField {
  const [{ group }] = due;
  const settings = settingsOf(config, group);
  const named = (one: TemporaryEntry): string => pathText(settings, one.path);
  const over = due.filter(({ ended }) => ended === null && settings !== null);
  const stays = due
    .filter((one) => !over.includes(one))
    .map((one) => `${named(one)}: ${one.ended ?? 'the group was deleted'}`);
  if (over.length === 0) return reported(group, null, [], stays);
  const next = over.reduce<unknown>((to, one) => withFieldAt(to, one.path, one.was), settings);
  const wanted = withSettings(config, group, next);
  const wrong = problemOf(wanted, options);
  if (wrong !== null) {
    return reported(group, null, [], [...stays, ...over.map((one) => `${named(one)}: ${wrong}`)]);
  }
  return reported(group, wanted, over.map(named), stays);
}

function reported(
  group: string,
  config: Config | null,
  back: readonly string[],
  stays: readonly string[],
): RevertedField {
  const parts = [
    back.length === 0 ? '' : `temporary change ended, reverted ${back.join(', ')}`,
    stays.length === 0 ? '' : `temporary change ended, not reverted: ${stays.join('; ')}`,
  ].filter((part) => part !== '');
  return { config, action: `group ${group}: ${parts.join('. ')}`, back, stays };
}

/** Returns why a configuration is invalid, or null if it is valid. */
function problemOf(config: Config, options: CheckOptions): string | null {
  const parsed = configSchema.safeParse(config);
  if (!parsed.success) return 'the configuration would be invalid';
  const [first] = checkConfig(config, BUILT_IN_UPSTREAMS, options).errors;
  return first === undefined ? null : `${first.path} ${first.message}`;
}
