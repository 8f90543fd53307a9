/**
 * Removes slashes that clients add to a path by mistake when they join a base URL and a route: `/v1//messages`,
 * `/v1/models/`. Slashes of a file key, or of an address inside a path, may have a meaning for an upstream. Everything
 * after the route that the operations table knows therefore stays unchanged, and so does a path without such a route.
 * Rules see the cleaned path, in all readings that are left.
 */
import type { Dialect } from '../../contract/dialect.ts';
import { routeIn } from './operation.ts';

/** Slashes at the front, and around a version that follows them. The base URL ends there. */
const FRONT = /^\/+(?:(v\d\w*)(?:\/+|$))?/i;

/** A version that is repeated, once from the base URL and once from the client. */
const TWICE = /(\/v\d\w*)\1+(?=\/)/gi;

const UNCLEAN = /\/(?:\/|$|(v\d\w*)\/\1\/)/i;

export function isUnclean(path: string): boolean {
  return UNCLEAN.test(path);
}

/** Cleans a path relative to the base URL of an upstream with this dialect. */
export function cleanPath(path: string, dialect: Dialect): string {
  const { text, starts } = collapsed(path);
  const plain = text.endsWith('/') ? text.slice(0, -1) : text;
  const end = plain === '' ? null : (routeIn(plain, dialect)?.end ?? null);
  if (end === null) return path.replace(FRONT, (_, version?: string) => frontOf(path, version));
  const route = plain.slice(0, end).replace(TWICE, '$1');
  return end === plain.length ? route : route + path.slice(starts[end]);
}

function frontOf(path: string, version: string | undefined): string {
  if (version === undefined) return '/';
  return path.toLowerCase().endsWith(`/${version.toLowerCase()}`) ? `/${version}` : `/${version}/`;
}

/** Whether a path repeats the version that its base URL ends with: `/v1/chat/completions` below `https://host/v1`. */
export function repeatsVersion(baseUrl: string, path: string, dialect: Dialect): boolean {
  const end = path.indexOf('/', 1);
  if (end < 0 || !baseUrl.endsWith(path.slice(0, end))) return false;
  if (!/^\/v\d\w*$/i.test(path.slice(0, end)) || new URL(baseUrl).pathname === '/') return false;
  return routeIn(path.slice(end), dialect) !== null;
}

/**
 * Replaces each run of slashes with one, except in an address (`https://`). `starts` are the original positions of the
 * characters.
 */
function collapsed(path: string): { readonly text: string; readonly starts: readonly number[] } {
  const starts: number[] = [];
  for (let index = 0; index < path.length; index += 1) {
    const repeats = path[index] === '/' && path[index - 1] === '/' && path[index - 2] !== ':';
    if (!repeats) starts.push(index);
  }
  return { text: starts.map((index) => path[index]).join(''), starts };
}
