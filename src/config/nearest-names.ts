import leven from 'leven';

/** Maximum distance of a misspelling; farther away is another word. */
const DISTANCE_MAX = 3;

/** Maximum length that is compared: longer names are no misspelling of a short one. */
const NAME_CHARACTERS_MAX = 64;

/** Maximum names shown to whoever misspelled one. */
const NEAR_MAX = 3;

/** Finds the name that `name` was most likely meant to be, or null where none comes near. */
export function nearestName(name: string, known: readonly string[]): string | null {
  return nearestNames(name, known)[0] ?? null;
}

/** Lists the names that `name` may have been meant to be, the likeliest first. */
export function nearestNames(name: string, known: readonly string[]): string[] {
  const lower = name.toLowerCase().replaceAll('-', '_');
  const limit = Math.min(DISTANCE_MAX, Math.ceil(name.length / 3));
  const short = lower.slice(0, NAME_CHARACTERS_MAX);
  const near = known
    .map((candidate) => ({
      candidate,
      distance: leven(short, candidate.replaceAll('-', '_'), { maxDistance: limit + 1 }),
    }))
    .filter(({ distance }) => distance <= limit)
    .toSorted((a, b) => a.distance - b.distance)
    .map(({ candidate }) => candidate);
  const camel = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  // A half-remembered name: `concurrency` for `max_concurrency`.
  const isPart = (candidate: string) =>
    lower.length > 3 && candidate.replaceAll('-', '_').includes(lower);
  const others = [...known.filter((candidate) => candidate === camel), ...known.filter(isPart)];
  return [...new Set([...near, ...others])].slice(0, NEAR_MAX);
}
