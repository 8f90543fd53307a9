import type { Config } from '../../contract/config/config.ts';

/** Warns of keys whose team has a name that none of the listed teams has: most likely it is misspelt. */
export function teamWarnings({ keys, teams }: Pick<Config, 'keys' | 'teams'>): string[] {
  if (teams.length === 0) return [];
  const listed = new Set(teams.map(({ id }) => id));
  const unknown = Map.groupBy(
    keys.filter(({ team }) => team !== null && !listed.has(team)),
    ({ team }) => team ?? '',
  );
  return [...unknown].map(
    ([team, of]) =>
      `${namesOf(of)} ${of.length === 1 ? 'names' : 'name'} the team "${team}", which teams does not list: no limits of a team hold for ${of.length === 1 ? 'it' : 'them'}.`,
  );
}

/** Most keys that a sentence names. */
const NAMED_MAX = 5;

function namesOf(keys: readonly { readonly id: string }[]): string {
  const named = keys.slice(0, NAMED_MAX).map(({ id }) => id);
  const more = keys.length - named.length;
  return `${keys.length === 1 ? 'The key' : 'The keys'} ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
