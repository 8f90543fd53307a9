import type { Env } from '../env.ts';
import type { Fetcher } from '../upstream/transfer/fetch-answer.ts';

/**
 * The public network, or the binding that the upstream is reached through. Nothing comes out of a cache on the
 * way: what one caller was told is no business of another's.
 */
export function fetcherOf(via: string | null, env: Env): Fetcher {
  if (via === null) return { fetch: (url, init) => fetch(url, { ...init, cache: 'no-store' }) };
  const binding = (env as unknown as Record<string, Fetcher | undefined>)[via];
  if (binding === undefined) return { fetch: () => Promise.reject(new Error(`no binding ${via}`)) };
  return { fetch: (url, init) => binding.fetch(url, { ...init, cache: 'no-store' }) };
}
