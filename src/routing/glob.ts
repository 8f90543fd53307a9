/**
 * Globs for names of models, upstreams and keys. `*` matches any run of characters, including `/`. Every other
 * character matches itself, case-insensitively. Glob packages differ: the `*` of picomatch stops at `/`, and picomatch
 * or wildcard-match interpret `?`, `[`, `(`, `{` and `!`, which may all be part of a model's name. No pattern becomes a
 * RegExp, so none can make matching slow.
 */

/** Compiles patterns into one test that is true if any of them matches the whole name. Without patterns it is false. */
export function compileGlobs(patterns: readonly string[]): (name: string) => boolean {
  const literals = new Set<string>();
  const globs: ((name: string) => boolean)[] = [];
  for (const pattern of patterns) {
    if (pattern.includes('*')) globs.push(compileGlob(pattern.toLowerCase()));
    else literals.add(pattern.toLowerCase());
  }
  return (name) => {
    const lower = name.toLowerCase();
    return literals.has(lower) || globs.some((matches) => matches(lower));
  };
}

function compileGlob(pattern: string): (name: string) => boolean {
  const { prefix, middles, suffix } = split(pattern);
  return (name) => {
    const end = name.length - suffix.length;
    if (end < prefix.length || !name.startsWith(prefix) || !name.endsWith(suffix)) return false;
    let at = prefix.length;
    for (const middle of middles) {
      // The leftmost match is always the best one, because it leaves most characters for what follows.
      const found = name.indexOf(middle, at);
      if (found === -1 || found + middle.length > end) return false;
      at = found + middle.length;
    }
    return true;
  };
}

function split(pattern: string): { prefix: string; middles: string[]; suffix: string } {
  const parts = pattern.split('*');
  return {
    prefix: parts[0] ?? '',
    middles: parts.slice(1, -1).filter((part) => part !== ''),
    suffix: parts.at(-1) ?? '',
  };
}

/** Whether some name matches both globs. The answer is exact, and takes time linear in their length. */
export function globsMayOverlap(a: string, b: string): boolean {
  const [one, two] = [a.toLowerCase(), b.toLowerCase()];
  if (!one.includes('*')) return two.includes('*') ? compileGlob(two)(one) : one === two;
  if (!two.includes('*')) return compileGlob(one)(two);
  const [first, second] = [split(one), split(two)];
  // With a star in each, only the ends can contradict each other. Between them, a name can contain all that the first
  // glob requires and then all that the second one requires, and the stars match the rest.
  return (
    (first.prefix.startsWith(second.prefix) || second.prefix.startsWith(first.prefix)) &&
    (first.suffix.endsWith(second.suffix) || second.suffix.endsWith(first.suffix))
  );
}

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
