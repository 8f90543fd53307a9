import type { Env } from '../env.ts';

/**
 * How long a pool must have rested for the directory to tell it nothing. Longer than copies of the configuration serve: a
 * call that comes later mostly reads the directory itself, and the pool beside it.
 */
const UNTOLD_AFTER_MS = 360_000;

/** How much sooner a pool counts as not told: its clock is another machine's. */
const MARGIN_MS = 60_000;

/**
 * Tells how long a pool must have rested for a change to leave it alone. Where Headgate hosts itself any does: a read of
 * the directory is a step within the process, and one thread would wake a thousand pools, one after the other.
 */
export function untoldAfterMs({ BOOT_ID: bootId }: Pick<Env, 'BOOT_ID'>): number {
  return bootId === undefined ? UNTOLD_AFTER_MS : 0;
}

/** Tells after how long without use a pool must read the directory, because nobody may have told it of changes. */
export function readsAfterMs(env: Pick<Env, 'BOOT_ID'>): number {
  return Math.max(0, untoldAfterMs(env) - MARGIN_MS);
}
