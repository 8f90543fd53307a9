import type { Config } from '../../contract/config/config.ts';

/** Warns of groups that put calls into lane `high`, which no gateway key allows. */
export function laneWarnings({ keys, groups }: Config): string[] {
  if (keys.length === 0 || keys.some(({ lane_max }) => lane_max === 'high')) return [];
  const named = groups.filter(
    ({ queue }) =>
      queue.lane_default === 'high' || queue.lane_rules.some(({ lane }) => lane === 'high'),
  );
  return named.map(
    ({ name }) =>
      `Group \`${name}\` puts calls into lane \`high\`, but no key allows that lane. ` +
      'Set `lane_max: high` on the keys whose calls may use it.',
  );
}
