import type { ConfigSnapshot } from '../contract/rpc/directory-rpc.ts';
import { directoryOf, type Env } from '../env.ts';
import { ProblemError } from './problem.ts';

/** Reads the configuration as it is now: admin routes never answer from a copy. */
export async function currentSnapshot(env: Env): Promise<ConfigSnapshot> {
  const snapshot = await directoryOf(env).snapshot(null);
  if (snapshot === null) throw new ProblemError(503, 'The directory gave no configuration.');
  return snapshot;
}
