import { JURISDICTIONS, LOCATIONS } from '../contract/config/locations.ts';
import type { LocationVariables } from '../env.ts';

const KNOWN: Readonly<Record<keyof LocationVariables, readonly string[]>> = {
  JURISDICTION: JURISDICTIONS,
  DIRECTORY_LOCATION: LOCATIONS,
};

/**
 * Returns an error message if a variable names an unknown location, otherwise null. All requests are rejected until it
 * is corrected, because an object that was created elsewhere cannot be moved.
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
  return `The variable \`${name}\` is ${shown}. Expected ${KNOWN[name].join(', ')}, or an empty value. Headgate rejects all requests until you correct it.`;
}
