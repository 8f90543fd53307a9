import type { FieldError } from '../field-error.ts';

/** Maximum paths in a message about one field. */
const PLACES_MAX = 3;

export class ImportReport {
  readonly notes = new Set<string>();
  readonly #omitted: FieldError[] = [];
  /** Paths of a field that many entries have, by message. */
  readonly #repeated = new Map<string, string[]>();

  omit(path: string, message: string): void {
    this.#omitted.push({ path, message });
  }

  /** Records an omitted part, once for all entries with the same field. */
  omitField(path: string, field: string, message: string): void {
    const key = `${field}\n${message}`;
    this.#repeated.set(key, [...(this.#repeated.get(key) ?? []), path]);
  }

  omitted(): FieldError[] {
    const repeated = [...this.#repeated].map(([key, [path = '', ...others]]) => {
      const [, message = ''] = key.split('\n');
      if (others.length === 0) return { path, message };
      const named = others.slice(0, PLACES_MAX - 1).join(', ');
      const more = others.length - (PLACES_MAX - 1);
      const rest = more > 0 ? ` and ${more} more` : '';
      return { path, message: `${message} (also in ${named}${rest})` };
    });
    return [...this.#omitted, ...repeated];
  }
}
