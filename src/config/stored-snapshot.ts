import { configSchema, type Config } from '../contract/config/config.ts';
import type { ConfigSnapshot } from '../contract/rpc/directory-rpc.ts';
import { withoutGone } from './gone-fields.ts';
import { snapshotStoreOf, type Env } from '../env.ts';
import { logEvent } from '../runtime/log.ts';
import { within } from '../runtime/within.ts';

/** The one key in the store. */
const KEY = 'snapshot';

/** How long the store may take. An isolate that begins has asked the directory by then. */
const STORE_TIMEOUT_MS = 1_000;

/** Writes the copy for isolates that begin, with nothing in it that no call goes by. */
export async function storeSnapshot(env: Env, snapshot: ConfigSnapshot): Promise<void> {
  const config: Config = { ...snapshot.config, admin_keys: [], webhook: null };
  const { temporary: _temporary, ...rest } = snapshot;
  await snapshotStoreOf(env)?.put(KEY, JSON.stringify({ ...rest, config }));
}

/** Reads that copy. Null: there is none, or it cannot be read. */
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
 * Fills in the defaults of fields that are newer than a stored configuration, and takes out those that are gone. One
 * that does not parse was written by a newer version and checked by it; every reader ignores the fields that it does
 * not know.
 */
export function withDefaults(stored: unknown): Config {
  const parsed = configSchema.safeParse(withoutGone(stored));
  if (!parsed.success) return stored as Config;
  if ('leases' in Object(stored)) return parsed.data;
  // Every caller could take leases before they required a right. Without the field they are closed, and the absence is kept:
  // the next import warns about it, and the log does until then.
  const { leases: _, ...others } = parsed.data;
  return others as Config;
}
