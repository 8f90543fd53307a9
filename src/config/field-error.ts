/** One thing that is wrong with a document, and where: `groups[0].limits.max_concurrency`. */
export interface FieldError {
  readonly path: string;
  readonly message: string;
}

/** Maximum length of a name that is repeated: no field and no upstream has a longer one, a longer text may be a key. */
const NAME_CHARACTERS_MAX = 32;

/** Writes a path as operators read it. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    const name = String(part);
    if (name.length > NAME_CHARACTERS_MAX) return `${text}[${quoteName(name)}]`;
    if (!/^[\w-]+$/.test(name)) return `${text}[${JSON.stringify(name)}]`;
    return text === '' ? name : `${text}.${name}`;
  }, '');
}

/** Quotes a name that nothing here has, as a message may repeat it. */
export function quoteName(name: string): string {
  return name.length > NAME_CHARACTERS_MAX ? `<${name.length} characters>` : JSON.stringify(name);
}

/** Joins a path in a part of a document to that of the part. */
export function below(at: string, path: string): string {
  return at === '' || path === '' || path.startsWith('[') ? `${at}${path}` : `${at}.${path}`;
}
