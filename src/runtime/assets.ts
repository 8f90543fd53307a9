import type { Env } from '../env.ts';

/** Returned with status 503 instead of a page that was not built. */
export const NOT_BUILT =
  'The files of the dashboard are missing. Build them with `npm run build:dashboard`, then restart or redeploy.\n';

/** Reads a file of the build, or returns null if there is none. A known `ETag` makes the response a 304. */
export async function readAsset(
  env: Pick<Env, 'ASSETS'>,
  path: string,
  knownEtag?: string,
): Promise<Response | null> {
  const headers = knownEtag === undefined ? {} : { 'if-none-match': knownEtag };
  const file = await env.ASSETS?.fetch(`https://dashboard${path}`, { headers });
  if (file?.status === 200 || file?.status === 304) return file;
  await file?.body?.cancel();
  return null;
}

/**
 * Source of scripts and styles of a page, for its content security policy: only the built files. Responses of upstreams
 * have the same origin, so `'self'` would allow them to run in the page. A policy cannot name an IPv6 address, so the
 * whole origin is allowed there.
 */
export function builtFilesAt(url: string): string {
  const { host } = new URL(url);
  return /^[\w.-]+(?::\d+)?$/.test(host) ? `${host}/admin/assets/` : "'self'";
}
