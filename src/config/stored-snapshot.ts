import { configSchema, type Config } from '../contract/config/config.ts';
import type { ConfigSnapshot } from '../contract/rpc/directory-rpc.ts';
import { withoutGone } from './gone-fields.ts';
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
    const found = (await within(STORE_TIMEOUT_MS, store.get(KEY, 'json'))) as ConfigSnapshot | null;
    return found === null ? null : { ...found, config: withDefaults(found.config) };
  } catch (error) {
    logEvent('snapshot_unreadable', { error: String(error) });
    return null;
  }
}

/**
 * Adds the defaults of fields that are newer than a stored configuration, and removes fields that no longer exist. A
 * configuration that does not parse was written and checked by a newer release. Readers ignore unknown fields.
 */
export function withDefaults(stored: unknown): Config {
  const parsed = configSchema.safeParse(withoutGone(stored));
  if (!parsed.success) return stored as Config;
  if ('leases' in Object(stored)) return parsed.data;
  // Before leases required a right, every client could take them. Without the field, leases are closed. The field stays
  // absent, so that the next import warns about it. Until then, its absence is logged.
  const { leases: _, ...others } = parsed.data;
  return others as Config;
}
