/**
 * Numbers of entries by the globs that they have, so that those which may match a text are found without a look at
 * the others: a name in full by itself, a glob by what stands before its first star. What is found is to be matched
 * still.
 */
export class PatternIndex {
  readonly #inFull = new Map<string, number[]>();
  /** By the text before the first star, and by the length of that. */
  readonly #byPrefix = new Map<number, Map<string, number[]>>();

  /** Tells whether an entry with these patterns can be found: a glob that begins with a star says nothing. */
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

  /** Adds the entries whose patterns may match a name. */
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
