/**
 * Index of entries by their globs. It returns the entries that may match a text without comparing all of them: full
 * names by equality, globs by the text before their first star. The results still have to be matched.
 */
export class PatternIndex {
  readonly #inFull = new Map<string, number[]>();
  /** By the text before the first star, and by its length. */
  readonly #byPrefix = new Map<number, Map<string, number[]>>();

  /** Whether the index can hold an entry with these patterns. A glob that begins with a star has no prefix. */
  static takes(patterns: readonly string[]): boolean {
    return patterns.length > 0 && patterns.every((pattern) => !pattern.startsWith('*'));
  }

  add(patterns: readonly string[], entry: number): void {
    for (const pattern of patterns) {
      const text = pattern.toLowerCase();
      const star = text.indexOf('*');
      if (star === -1) push(this.#inFull, text, entry);
      else push(this.#ofLength(star), text.slice(0, star), entry);
    }
  }

  find(name: string, found: Set<number>): void {
    const text = name.toLowerCase();
    for (const entry of this.#inFull.get(text) ?? []) found.add(entry);
    for (const [length, prefixes] of this.#byPrefix) {
      if (length > text.length) continue;
      for (const entry of prefixes.get(text.slice(0, length)) ?? []) found.add(entry);
    }
  }

  #ofLength(length: number): Map<string, number[]> {
    const known = this.#byPrefix.get(length);
    if (known !== undefined) return known;
    const made = new Map<string, number[]>();
    this.#byPrefix.set(length, made);
    return made;
  }
}

function push(to: Map<string, number[]>, key: string, entry: number): void {
  const known = to.get(key);
  if (known === undefined) to.set(key, [entry]);
  else known.push(entry);
}
