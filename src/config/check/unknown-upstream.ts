import { quoteName } from '../field-error.ts';
import { nearestNames } from '../nearest-names.ts';

/** Returns a message for an unknown upstream, with similar names. */
export function unknownUpstream(name: string, known: Iterable<string>): string {
  const near = nearestNames(name, [...known]).map((each) => `\`${each}\``);
  const hint = near.length === 0 ? '' : `; did you mean ${near.join(', ')}?`;
  return `${quoteName(name)} is not an enabled upstream${hint}`;
}
