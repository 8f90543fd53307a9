import { PROVIDERS } from '../providers/index.ts';
import { quoteName } from './field-error.ts';

/**
 * Prefixes of keys of providers and of Headgate. Configurations are shown and logged, so they must not contain keys.
 */
const KEY_PREFIXES: readonly string[] = [
  'sk-',
  'sk_',
  'hg_',
  'bearer ',
  ...PROVIDERS.flatMap(({ keyPrefixes = [] }) => keyPrefixes),
];

/** Whether a text begins like a key and must not be repeated. */
export function isKeyLike(text: string): boolean {
  const lower = text.toLowerCase();
  return KEY_PREFIXES.some((prefix) => lower.startsWith(prefix));
}

/** Quotes a name, unless it may be a misplaced key. */
export function quoteNoKey(name: string): string {
  return isKeyLike(name) ? `<${name.length} characters>` : quoteName(name);
}
