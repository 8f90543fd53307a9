import type { Config } from '../contract/config/config.ts';
import type { ConfigSnapshot } from '../contract/rpc/directory-rpc.ts';
import { snapshotStoreOf, type Env } from '../env.ts';
import { logEvent } from '../runtime/log.ts';
import { within } from '../runtime/within.ts';

/** The only key in the store. */
const KEY = 'snapshot';

/** Time limit for the store. A new isolate has queried the directory by then. */
const STORE_TIMEOUT_MS = 1_000;

/** Writes the copy for new isolates, without the parts that no call uses. */
export async function storeSnapshot(env: Env, snapshot: ConfigSnapshot): Promise<void> {
  const config: Config = { ...snapshot.config, admin_keys: [], webhook: null };
  const { temporary: _temporary, ...rest } = snapshot;
  await snapshotStoreOf(env)?.put(KEY, JSON.stringify({ ...rest, config }));
}

/** Reads that copy. null if there is none, or if it cannot be read. */
export async function storedSnapshot(env: Env): Promise<ConfigSnapshot | null> {
  const store = snapshotStoreOf(env);
  if (store === null) return null;
  try {
    // The cast is sound: only `storeSnapshot` writes the key.
    return (await within(STORE_TIMEOUT_MS, store.get(KEY, 'json'))) as ConfigSnapshot | null;
  } catch (error) {
    logEvent('snapshot_unreadable', { error: String(error) });
    return null;
  }
}
