import type { Env } from '../env.ts';
import { POOL_IDLE_MS } from '../contract/rpc/group-rpc.ts';

/**
 * Shorter than on Cloudflare, because in one process a message to the directory costs nothing and reported states are
 * lost when the process ends.
 */
const WINDOW_OF_ONE_PROCESS_MS = 60_000;

/** Returns how long a pool that reported its use stays silent before it reports again. */
export function windowMsOf({ BOOT_ID: bootId }: Pick<Env, 'BOOT_ID'>): number {
  return bootId === undefined ? POOL_IDLE_MS : WINDOW_OF_ONE_PROCESS_MS;
}
