/** Farther than this, a name is not a misspelling any more but another word. */
const DISTANCE_MAX = 3;

/** The name that `name` was most likely meant to be, or null where none comes near. */
export function nearestName(name: string, known: readonly string[]): string | null {
  const lower = name.toLowerCase().replaceAll('-', '_');
  // A half-remembered name: `concurrency` for `max_concurrency`.
  const part = known.find((candidate) => lower.length > 3 && candidate.includes(lower));
  const ranked = known
    .map((candidate) => ({ candidate, distance: distance(lower, candidate) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  const limit = Math.min(DISTANCE_MAX, Math.ceil(name.length / 3));
  if (best !== undefined && best.distance <= limit) return best.candidate;
  const camel = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return known.find((candidate) => candidate === camel) ?? part ?? null;
}

/** Levenshtein's distance, row by row. Long names are cut: they are no misspelling of a short one. */
function distance(from: string, to: string): number {
  const a = from.slice(0, 64);
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let line = 1; line <= a.length; line++) {
    const next = [line];
    for (let column = 1; column <= to.length; column++) {
      const replaced = (row[column - 1] ?? 0) + (a[line - 1] === to[column - 1] ? 0 : 1);
      const removed = (row[column] ?? 0) + 1;
      const added = (next[column - 1] ?? 0) + 1;
      next.push(Math.min(replaced, removed, added));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
