import { JURISDICTIONS, LOCATIONS } from '../contract/config/group.ts';
import type { LocationVariables, Env } from '../env.ts';
import { POOL_IDLE_MS } from '../contract/rpc/group-rpc.ts';

/**
 * What the deployment determines: the places of its objects, its isolates, the window of presence reports, and the
 * built files.
 */

const KNOWN: Readonly<Record<keyof LocationVariables, readonly string[]>> = {
  JURISDICTION: JURISDICTIONS,
  DIRECTORY_LOCATION: LOCATIONS,
};

/**
 * Returns an error message if a variable names an unknown location, otherwise null. All requests are rejected until it
 * is corrected, because an object that was created elsewhere cannot be moved.
 */
export function wrongPlace(env: LocationVariables): string | null {
  const { JURISDICTION, DIRECTORY_LOCATION } = env;
  if (!JURISDICTION && !DIRECTORY_LOCATION) return null;
  return (
    unknownIn('JURISDICTION', JURISDICTION) ?? unknownIn('DIRECTORY_LOCATION', DIRECTORY_LOCATION)
  );
}

function unknownIn(name: keyof LocationVariables, value = ''): string | null {
  if (value === '' || KNOWN[name].includes(value)) return null;
  const shown = JSON.stringify(value.slice(0, 40));
  return `The variable \`${name}\` is ${shown}. Expected ${KNOWN[name].join(', ')}, or an empty value. Headgate rejects all requests until you correct it.`;
}

/**
 * Shorter than on Cloudflare, because in one process a message to the directory costs nothing and reported states are
 * lost when the process ends.
 */
const WINDOW_OF_ONE_PROCESS_MS = 60_000;

/** Returns how long a pool that reported its use stays silent before it reports again. */
export function windowMsOf({ BOOT_ID: bootId }: Pick<Env, 'BOOT_ID'>): number {
  return bootId === undefined ? POOL_IDLE_MS : WINDOW_OF_ONE_PROCESS_MS;
}

let id: string | null = null;

/**
 * Returns the random id of this isolate, because the runtime gives it none. Pools use it to identify isolates and to
 * name their prefetched slots. It is long enough to be unique and short enough to be stored often.
 */
export function isolateId(): string {
  // The runtime provides random numbers only within a request.
  id ??= crypto.randomUUID().slice(-12);
  return id;
}

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
