import { readFile, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';

/** How long another process may take to let go of a folder, as at a restart. */
const LOCK_WAIT_MS = 2_000;
const LOCK_LOOK_MS = 50;

const SQLITE_BUSY = 5;

/** A data folder that this process holds. */
export interface FolderLock {
  release(): Promise<void>;
}

/** Locks that are held: one that nobody refers to would be let go with its garbage. */
const held = new Set<DatabaseSync>();

/**
 * Takes a lock that the process holds and the kernel lets go of, however it ends: no file says that somebody is
 * there who is not. It holds between containers too, if they share the file system and the machine.
 * SQLite has the one lock for files that works alike everywhere. Null: another one has it.
 */
function tryLock(path: string): DatabaseSync | null {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec('BEGIN EXCLUSIVE');
    held.add(database);
    return database;
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    throw error;
  }
}

/** Says in the folder who has it. */
async function claimed(lock: DatabaseSync, ownerPath: string): Promise<FolderLock> {
  const letGo = (): void => {
    if (held.delete(lock)) lock.close();
  };
  try {
    await writeFile(ownerPath, `process ${process.pid} on ${hostname()}`);
  } catch (error) {
    letGo();
    throw error;
  }
  return {
    async release() {
      if (held.has(lock)) await rm(ownerPath, { force: true });
      letGo();
    },
  };
}

/** Locks a data folder, or refuses: two processes on one would each grant the whole limit. */
export async function lockFolder(dataDir: string): Promise<FolderLock> {
  const ownerPath = join(dataDir, 'serve.owner');
  const deadline = performance.now() + LOCK_WAIT_MS;
  for (;;) {
    const lock = tryLock(join(dataDir, 'serve.lock'));
    if (lock !== null) {
      return claimed(lock, ownerPath);
    }
    if (performance.now() > deadline) {
      const owner = await readFile(ownerPath, 'utf8').catch(() => '');
      throw new Error(
        `Another Headgate${owner && ` (${owner})`} has ${dataDir}. Two of them would each grant the whole limit.`,
      );
    }
    await delay(LOCK_LOOK_MS);
  }
}
