import type { GroupConfig } from '../contract/config/config.ts';
import { METHODS_WITH_BODY } from '../contract/methods.ts';
import { readingsOf } from '../upstream/operation/path-readings.ts';
import { compileGlobs } from './glob.ts';

/** Method and path of a call for groups with paths: the path as sent, and as servers may resolve it. */
export interface CalledAt {
  readonly method: string;
  readonly paths: readonly string[];
}

/** Whether some reading of a path matches. null if the group has no paths and takes calls by any. */
export type PathTest = ((at: CalledAt) => boolean) | null;

type PathRule = Pick<GroupConfig['match'], 'paths' | 'methods'>;

export function namesPaths({ match }: { readonly match: PathRule }): boolean {
  return match.paths.length > 0;
}

export function calledAt(method: string, path: string): CalledAt {
  const plain = withoutEnd(path);
  return { method, paths: [...new Set([plain, ...readingsOf(plain).map(withoutEnd)])] };
}

/** Compiles the paths of a group with their methods. The default is all methods with a body. */
export function compilePaths({ paths, methods }: PathRule): PathTest {
  if (paths.length === 0) return null;
  const isNamed = compileGlobs(paths);
  const taken = new Set<string>(methods.length === 0 ? METHODS_WITH_BODY : methods);
  return (at) => taken.has(at.method) && at.paths.some(isNamed);
}

/** Removes trailing slashes, which servers ignore. A regular expression would take quadratic time over many of them. */
function withoutEnd(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return end === 0 ? '/' : path.slice(0, end);
}
