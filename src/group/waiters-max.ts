import type { Env } from '../env.ts';

/** Maximum waiters of one group where Headgate hosts itself. */
export const WAITERS_MAX = 5_000;

/** The same on Cloudflare, where an isolate has 128 MB: `docs/performance.md` says what a parked call takes of it. */
export const WAITERS_MAX_CLOUDFLARE = 2_000;

/** Finds how many calls may wait in one group, whatever is configured. */
export function waitersMax({ BOOT_ID: bootId }: Pick<Env, 'BOOT_ID'>): number {
  return bootId === undefined ? WAITERS_MAX_CLOUDFLARE : WAITERS_MAX;
}
