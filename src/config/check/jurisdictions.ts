import type { Config } from '../../contract/config/config.ts';

/**
 * Warns of groups in another jurisdiction than the directory and the live feed. A self-hosted Headgate has one
 * location.
 */
export function jurisdictionWarnings(
  { groups }: Pick<Config, 'groups'>,
  options: { readonly privateUpstreams: boolean; readonly jurisdiction: string | null },
): string[] {
  if (options.privateUpstreams) return [];
  return groups.flatMap(({ name, jurisdiction }) => {
    if (jurisdiction === null || jurisdiction === options.jurisdiction) return [];
    return [
      `Group \`${name}\`: its pools are stored in ${jurisdiction}, but the directory and the live feed are not. They store its ` +
        'configuration and receive the names of its callers, agents and models. To store them there too, set the variable ' +
        '`JURISDICTION` in a new deployment. See docs/production.md, "Jurisdiction and location".',
    ];
  });
}
