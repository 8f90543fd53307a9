import type { GroupConfig } from '../contract/config/config.ts';
import { METHODS_WITH_BODY } from '../contract/methods.ts';
import { readingsOf } from '../upstream/operation/path-readings.ts';
import { compileGlobs } from './glob.ts';

/** The address of a call, as groups that name paths compare it: its path as it stands, and what servers may take it for. */
export interface CalledAt {
  readonly method: string;
  readonly paths: readonly string[];
}

/** Tells whether some reading of a path is named. Null: the group names no paths, and takes calls by any. */
export type PathTest = ((at: CalledAt) => boolean) | null;

type PathRule = Pick<Partial<GroupConfig['match']>, 'paths' | 'methods'>;

/** Tells whether a group names paths. A configuration of the version before knows of none. */
export function namesPaths({ match: { paths = [] } }: { readonly match: PathRule }): boolean {
  return paths.length > 0;
}

/** Reads the address of a call. */
export function calledAt(method: string, path: string): CalledAt {
  const plain = withoutEnd(path);
  return { method, paths: [...new Set([plain, ...readingsOf(plain).map(withoutEnd)])] };
}

/** Compiles the paths of a group, with their methods: those with a body, unless it lists others. */
export function compilePaths({ paths = [], methods = [] }: PathRule): PathTest {
  if (paths.length === 0) return null;
  const isNamed = compileGlobs(paths);
  const taken = new Set<string>(methods.length === 0 ? METHODS_WITH_BODY : methods);
  return (at) => taken.has(at.method) && at.paths.some(isNamed);
}

/** Without slashes at its end, which servers pass over. A regular expression would take quadratic time over many. */
function withoutEnd(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return end === 0 ? '/' : path.slice(0, end);
}
