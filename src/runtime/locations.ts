import { JURISDICTIONS, LOCATIONS } from '../contract/config/locations.ts';
import type { LocationVariables } from '../env.ts';

const KNOWN: Readonly<Record<keyof LocationVariables, readonly string[]>> = {
  JURISDICTION: JURISDICTIONS,
  DIRECTORY_LOCATION: LOCATIONS,
};

/**
 * Finds a variable that names a place which does not exist, and says what was expected; null: there is none. Nothing is
 * served until it is right: an object that was created elsewhere would stay there.
 */
export function wrongPlace(env: LocationVariables): string | null {
  const { JURISDICTION, DIRECTORY_LOCATION } = env;
  if (!JURISDICTION && !DIRECTORY_LOCATION) return null;
  return (
    unknownIn('JURISDICTION', JURISDICTION) ?? unknownIn('DIRECTORY_LOCATION', DIRECTORY_LOCATION)
  );
}

function unknownIn(name: keyof LocationVariables, value = ''): string | null {
  if (value === '' || KNOWN[name].includes(value)) return null;
  const shown = JSON.stringify(value.slice(0, 40));
  return `The variable ${name} is ${shown}: expected ${KNOWN[name].join(', ')}, or nothing. Nothing is served until it is.`;
}
