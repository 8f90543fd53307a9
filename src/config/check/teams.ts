import { ticked } from '../field-error.ts';
import type { Config } from '../../contract/config/config.ts';

/** Warns of keys whose team is not listed, which is most likely a misspelling. */
export function teamWarnings({ keys, teams }: Pick<Config, 'keys' | 'teams'>): string[] {
  if (teams.length === 0) return [];
  const listed = new Set(teams.map(({ id }) => id));
  const unknown = Map.groupBy(
    keys.filter(({ team }) => team !== null && !listed.has(team)),
    ({ team }) => team ?? '',
  );
  return [...unknown].map(
    ([team, of]) =>
      `${namesOf(of)} ${of.length === 1 ? 'names' : 'name'} the team \`${team}\`, which \`teams\` does not list, so no team limits apply to ${of.length === 1 ? 'it' : 'them'}. Correct the name, or add the team.`,
  );
}

/** Maximum keys in a sentence. */
const NAMED_MAX = 5;

function namesOf(keys: readonly { readonly id: string }[]): string {
  const named = keys.slice(0, NAMED_MAX).map(({ id }) => id);
  const more = keys.length - named.length;
  return `${keys.length === 1 ? 'The key' : 'The keys'} ${ticked(named)}${more > 0 ? ` and ${more} more` : ''}`;
}
