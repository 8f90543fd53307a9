import { BoundedMap } from '../../core/parts/bounded-map.ts';

/** A date or a number at the end of a model name, and a version after it. */
const SNAPSHOT = /[-@](?:latest|default|\d{8}|\d{4}-\d{2}-\d{2}|00\d)$/;
const VERSION = /(?:-v1|-v\d+:\d+)$/;

/**
 * Lists the names under which a model's price may be listed, the most specific first. They are the whole name, then the
 * name with one part of its path (`vendor/model`), then without any, because `models/` or `publishers/google/models/`
 * may precede it. Each is also listed without a snapshot suffix: `-2024-08-06`, `@20250929`, `-20250929-v1:0`,
 * `-latest`, `-001`. Any other suffix makes it another model: `gpt-4-32k` and `gpt-4.5` do not cost what `gpt-4` does.
 */
export function listedNames(model: string): readonly string[] {
  let names = known.get(model);
  if (names === undefined) {
    names = namesOf(model);
    known.set(model, names);
  }
  return names;
}

/** Maximum number of models whose names are cached. Each call looks them up several times. */
const KNOWN_MAX = 256;

const known = new BoundedMap<string, readonly string[]>(KNOWN_MAX);

function namesOf(model: string): readonly string[] {
  const whole = model.toLowerCase();
  const segments = whole.split('/');
  // Only parts of the path, because a caller controls their number.
  const paths = [whole, segments.slice(-2).join('/'), segments.slice(-1).join('/')];
  return [...new Set(paths.flatMap(withoutSnapshot))];
}

function withoutSnapshot(name: string): readonly string[] {
  const unversioned = name.replace(VERSION, '');
  return [name, unversioned, unversioned.replace(SNAPSHOT, '')];
}
