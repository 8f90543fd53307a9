import { quoted } from '../core/words/quoted.ts';
/** An error in a document, and its path, as in `groups[0].limits.max_concurrency`. */
export interface FieldError {
  readonly path: string;
  readonly message: string;
}

/** Maximum length of a repeated name. No field or upstream has a longer one, so a longer text may be a key. */
const NAME_CHARACTERS_MAX = 32;

export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    const name = String(part);
    if (name.length > NAME_CHARACTERS_MAX) return `${text}[${quoteName(name)}]`;
    if (!/^[\w-]+$/.test(name)) return `${text}[${JSON.stringify(name)}]`;
    return text === '' ? name : `${text}.${name}`;
  }, '');
}

export function quoteName(name: string): string {
  return name.length > NAME_CHARACTERS_MAX ? `<${name.length} characters>` : quoted(name);
}

/** Lists names for a message. */
export function ticked(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}

/** Appends a path within a part to the path of the part. */
export function below(at: string, path: string): string {
  return at === '' || path === '' || path.startsWith('[') ? `${at}${path}` : `${at}.${path}`;
}
