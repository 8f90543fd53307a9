import type { Env } from '../env.ts';

/** Maximum waiters of a pool if Headgate is self-hosted. */
export const WAITERS_MAX = 5_000;

/** Maximum on Cloudflare, where an isolate has 128 MB. `design/performance.md` lists the memory of a parked call. */
export const WAITERS_MAX_CLOUDFLARE = 2_000;

/** Returns the maximum waiters of a pool, regardless of the configuration. */
export function waitersMax({ BOOT_ID: bootId }: Pick<Env, 'BOOT_ID'>): number {
  return bootId === undefined ? WAITERS_MAX_CLOUDFLARE : WAITERS_MAX;
}
