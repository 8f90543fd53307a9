import { quoteName } from '../field-error.ts';
import { nearestNames } from '../nearest-names.ts';

/** Words that a name is that of no enabled upstream, with those that it may have been meant to be. */
export function unknownUpstream(name: string, known: Iterable<string>): string {
  const near = nearestNames(name, [...known]).map((each) => `"${each}"`);
  const hint = near.length === 0 ? '' : `; did you mean ${near.join(', ')}?`;
  return `${quoteName(name)} names no enabled upstream${hint}`;
}
