import type { Env } from '../env.ts';
import { POOL_IDLE_MS } from '../contract/rpc/group-rpc.ts';

/** The window where a message to the directory costs nothing, and what a process knew ends with it. */
const WINDOW_OF_ONE_PROCESS_MS = 60_000;

/** Tells how long a pool that said that it is in use says nothing more. */
export function windowMsOf({ BOOT_ID: bootId }: Pick<Env, 'BOOT_ID'>): number {
  return bootId === undefined ? POOL_IDLE_MS : WINDOW_OF_ONE_PROCESS_MS;
}
