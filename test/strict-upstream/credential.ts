import type { IncomingHttpHeaders } from 'node:http';
import type { StrictScope } from './scope.ts';

const PLACES = ['x-api-key', 'x-goog-api-key', 'api-key'] as const;

/** The key that a call came with, wherever it stands; null: none. */
export function keyOf(headers: IncomingHttpHeaders): string | null {
  const bearer = headers.authorization?.replace(/^bearer\s+/i, '');
  const found = [bearer, ...PLACES.map((name) => headers[name])].find((key) => key !== undefined);
  return typeof found === 'string' ? found : null;
}

/** Whose a key is. Null: nobody asks. Undefined: nobody's. */
export function accountOf(
  { settings }: StrictScope,
  key: string | null,
): string | null | undefined {
  return settings.accounts === null ? null : settings.accounts[key ?? ''];
}
