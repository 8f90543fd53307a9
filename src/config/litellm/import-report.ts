import type { FieldError } from '../field-error.ts';

/** Maximum places that are named of one field. */
const PLACES_MAX = 3;

/** Collects the notes of an import, and the parts that were left out. */
export class ImportReport {
  readonly notes = new Set<string>();
  readonly #omitted: FieldError[] = [];
  /** Places of a field that many entries have, by what is said of it. */
  readonly #repeated = new Map<string, string[]>();

  /** Records a part that was left out. */
  omit(path: string, message: string): void {
    this.#omitted.push({ path, message });
  }

  /** Records a part that was left out, once for all entries that have the same field. */
  omitField(path: string, field: string, message: string): void {
    const key = `${field}\n${message}`;
    this.#repeated.set(key, [...(this.#repeated.get(key) ?? []), path]);
  }

  /** Lists everything that was left out. */
  omitted(): FieldError[] {
    const repeated = [...this.#repeated].map(([key, [path = '', ...others]]) => {
      const [, message = ''] = key.split('\n');
      if (others.length === 0) return { path, message };
      const named = others.slice(0, PLACES_MAX - 1).join(', ');
      const more = others.length - (PLACES_MAX - 1);
      const rest = more > 0 ? ` and ${more} more` : '';
      return { path, message: `${message} (so in ${named}${rest})` };
    });
    return [...this.#omitted, ...repeated];
  }
}
