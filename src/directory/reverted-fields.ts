import { checkConfig, type CheckOptions } from '../config/check-config.ts';
import { pathText, withFieldAt } from '../config/field-paths.ts';
import { configSchema, type Config } from '../contract/config/config.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { settingsOf, withSettings } from '../routing/group-settings.ts';
import type { TemporaryEntry } from './temporary-list.ts';

/** Actor of what the directory does by itself. No admin key can have that id. */
export const OWN_ACTOR = 'headgate:directory';

/** The fate of the fields of one group whose time is over. */
export interface RevertedField {
  /** Null: nothing goes back. */
  readonly config: Config | null;
  /** Words of the audit log. */
  readonly action: string;
  /** Fields that go back, for people. */
  readonly back: readonly string[];
  /** Those that do not, each with why. */
  readonly stays: readonly string[];
}

/** Puts fields of one group back where they still have the value that was meant for a while. */
export function goingBack(
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
    back.length === 0 ? '' : `time is over, ${back.join(', ')} back`,
    stays.length === 0 ? '' : `time is over, not back: ${stays.join('; ')}`,
  ].filter((part) => part !== '');
  return { config, action: `group ${group}: ${parts.join('. ')}`, back, stays };
}

/** Finds what is wrong with a configuration. Null: nothing. */
function problemOf(config: Config, options: CheckOptions): string | null {
  const parsed = configSchema.safeParse(config);
  if (!parsed.success) return 'it would not be valid any more';
  const [first] = checkConfig(config, BUILT_IN_UPSTREAMS, options).errors;
  return first === undefined ? null : `${first.path} ${first.message}`;
}
