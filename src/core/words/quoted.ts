/**
 * Kept apart from `figures.ts`. The dashboard loads the figures at its start. It loads the checks of the configuration,
 * which quote names, only on some pages. In one file, they add chunks to the first load.
 */

/** Maximum length of a client's text in a message. */
const QUOTED_MAX = 100;

/** Quotes text of a client for a message: in backticks, shortened, with control characters escaped. */
export function quoted(text: string): string {
  if (text === '') return '""';
  const shown = text.length > QUOTED_MAX ? `${text.slice(0, QUOTED_MAX)}…` : text;
  return `\`${JSON.stringify(shown).slice(1, -1).replaceAll('\\"', '"')}\``;
}
