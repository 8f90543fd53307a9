/**
 * Globs over names of models, upstreams and keys: `*` stands for any run of characters, a `/`
 * included, and every other character for itself, in lower case. Packages do not read globs that
 * way: picomatch's `*` stops at `/`, and `?`, `[`, `(`, `{`, `!` mean something to it or to
 * wildcard-match, while all of them may stand in a model's name. Nothing becomes a RegExp, so no
 * pattern can make matching slow.
 */

/** Compiles patterns into one test: true if any of them matches the whole name. No pattern, no match. */
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
      // The leftmost place is always the best one: it leaves the most for what follows.
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

/** Tells whether some name matches both globs. Exact, and linear in their length. */
export function globsMayOverlap(a: string, b: string): boolean {
  const [one, two] = [a.toLowerCase(), b.toLowerCase()];
  if (!one.includes('*')) return two.includes('*') ? compileGlob(two)(one) : one === two;
  if (!two.includes('*')) return compileGlob(one)(two);
  const [first, second] = [split(one), split(two)];
  // With a star in each, only the two ends can contradict each other: between them stands
  // whatever the one demands, then whatever the other does, and the stars take in the rest.
  return (
    (first.prefix.startsWith(second.prefix) || second.prefix.startsWith(first.prefix)) &&
    (first.suffix.endsWith(second.suffix) || second.suffix.endsWith(first.suffix))
  );
}
