import type { ConfigSnapshot } from '../contract/rpc/directory-rpc.ts';
import { directoryOf, type Env } from '../env.ts';
import { ProblemError } from './problem.ts';

/** Reads the current configuration. Admin routes never use a copy. */
export async function currentSnapshot(env: Env): Promise<ConfigSnapshot> {
  const snapshot = await directoryOf(env).snapshot(null);
  if (snapshot === null) {
    throw new ProblemError(503, 'The directory returned no configuration. Retry later.');
  }
  return snapshot;
}
