// Steps 2 and 3: keys where none belongs. check-config.ts lists all steps.

import { PROVIDERS } from '../providers/index.ts';
import { quoteName } from './field-error.ts';

/** Beginnings of providers' keys and of our own. Configurations are shown and logged: no key belongs there. */
const KEY_PREFIXES: readonly string[] = [
  'sk-',
  'sk_',
  'hg_',
  'bearer ',
  ...PROVIDERS.flatMap(({ keyPrefixes = [] }) => keyPrefixes),
];

/** Whether a text begins like a key, so that it may not be repeated. */
export function isKeyLike(text: string): boolean {
  const lower = text.toLowerCase();
  return KEY_PREFIXES.some((prefix) => lower.startsWith(prefix));
}

/** Quotes a name that stands where a key may have been put by mistake. */
export function quoteNoKey(name: string): string {
  return isKeyLike(name) ? `<${name.length} characters>` : quoteName(name);
}
