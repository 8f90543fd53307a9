import type { Config } from '../../contract/config/config.ts';

/** Warns of groups that are kept where the directory and the live feed are not. Self-hosted there is one place. */
export function jurisdictionWarnings(
  { groups }: Pick<Config, 'groups'>,
  options: { readonly privateUpstreams: boolean; readonly jurisdiction: string | null },
): string[] {
  if (options.privateUpstreams) return [];
  return groups.flatMap(({ name, jurisdiction }) => {
    if (jurisdiction === null || jurisdiction === options.jurisdiction) return [];
    return [
      `Group "${name}": its pools are kept in ${jurisdiction}, the directory and the live feed are not. They hold its ` +
        'configuration, and hear of its callers, agents and models. The variable JURISDICTION keeps them there, in a ' +
        'new deployment: see "A jurisdiction and a place" in docs/operations.md.',
    ];
  });
}
