import type { Env } from '../contract/env.ts';
import type { Fetcher } from '../upstream/held-call.ts';

/** The public network, or the binding that the upstream is reached through. */
export function fetcherOf(via: string | null, env: Env): Fetcher {
  if (via === null) return { fetch: (url, init) => fetch(url, init) };
  const binding = (env as unknown as Record<string, Fetcher | undefined>)[via];
  return binding ?? { fetch: () => Promise.reject(new Error(`no binding ${via}`)) };
}
