import type { FieldError } from '../config/field-error.ts';
import type { Config, UpstreamConfig } from '../contract/config/config.ts';

/**
 * Replaces the groups, and adds missing upstreams. An existing upstream stays, and prices and aliases of the import are
 * added to it.
 */
export function withGroupsOf(present: Config, { groups, upstreams }: Config): Config {
  const imported = new Map(upstreams.map((upstream) => [upstream.id, upstream]));
  const known = new Set(present.upstreams.map(({ id }) => id));
  return {
    ...present,
    upstreams: [
      ...present.upstreams.map((upstream) => {
        const added = imported.get(upstream.id);
        if (added === undefined) return upstream;
        const prices = { ...upstream.prices, ...added.prices };
        return { ...upstream, prices, aliases: { ...upstream.aliases, ...added.aliases } };
      }),
      ...upstreams.filter(({ id }) => !known.has(id)),
    ],
    groups,
  };
}

/** Returns errors for imported members and groups whose upstream already exists with another destination. */
export function differingUpstreams(present: Config, imported: Config): FieldError[] {
  const there = new Map(present.upstreams.map((upstream) => [upstream.id, upstream]));
  const differing = new Set(
    imported.upstreams.flatMap((upstream) => {
      const known = there.get(upstream.id);
      return known === undefined || leadsThere(upstream, known) ? [] : [upstream.id];
    }),
  );
  const errorAt = (path: string, id: string): FieldError[] =>
    differing.has(id)
      ? [
          {
            path,
            message: `needs the upstream \`${id}\`, but an upstream with this id exists and has another address, dialect or auth. Delete the existing one, or import a document in Headgate's format and rename this one`,
          },
        ]
      : [];
  return imported.groups.flatMap((group, at) => [
    ...group.members.flatMap(({ upstream }, index) =>
      errorAt(`groups[${at}].members[${index}].upstream`, upstream),
    ),
    ...group.match.upstreams.flatMap((id, index) =>
      errorAt(`groups[${at}].match.upstreams[${index}]`, id),
    ),
  ]);
}

/** Returns whether a configured upstream and the imported one send calls to the same address. */
function leadsThere(imported: UpstreamConfig, known: UpstreamConfig): boolean {
  // An import does not contain the address of a built-in upstream.
  if (imported.base_url === undefined) return true;
  const placeOf = ({ base_url: base = '', dialect = 'openai', openai_at: at }: UpstreamConfig) =>
    JSON.stringify([base.replace(/\/+$/, ''), dialect, at ?? null]);
  const isKeylessAlike = (imported.auth === 'none') === (known.auth === 'none');
  return placeOf(imported) === placeOf(known) && isKeylessAlike;
}
