import leven from 'leven';

/** Maximum distance of a misspelling. A more distant name is another word. */
const DISTANCE_MAX = 3;

/** Maximum compared length. Longer names are not misspellings of a short one. */
const NAME_CHARACTERS_MAX = 64;

const NEAR_MAX = 3;

/** Returns the known name closest to `name`. null if none is close. */
export function nearestName(name: string, known: readonly string[]): string | null {
  return nearestNames(name, known)[0] ?? null;
}

/** Returns the known names close to `name`, the closest first. */
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
  // A part of a name: `concurrency` for `max_concurrency`.
  const isPart = (candidate: string) =>
    lower.length > 3 && candidate.replaceAll('-', '_').includes(lower);
  const others = [...known.filter((candidate) => candidate === camel), ...known.filter(isPart)];
  return [...new Set([...near, ...others])].slice(0, NEAR_MAX);
}
