import { spawn } from 'node:child_process';
import { open, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type * as Sqlite from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';

/** How long another process may take to release a folder, for example at a restart. */
const LOCK_WAIT_MS = 2_000;
const LOCK_LOOK_MS = 50;

const SQLITE_BUSY = 5;

export interface FolderLock {
  release(): Promise<void>;
}

/** A lock that is held until it is released or the process ends. */
interface HeldFolderLock {
  release(): void;
}

/** Held locks. Without this reference, garbage collection would release them. */
const held = new Set<HeldFolderLock>();

/**
 * Acquires a lock that the kernel releases whenever the process ends, so no stale lock remains. It also works between
 * containers that share the file system and the machine. SQLite has the only file lock that works the same on all
 * platforms, and Node includes SQLite since 22.13. null if another process holds the lock.
 */
async function tryLock(path: string): Promise<HeldFolderLock | null> {
  const sqlite = process.getBuiltinModule('node:sqlite') as typeof Sqlite | undefined;
  const lock = sqlite === undefined ? await lockByProgram(path) : lockBySqlite(sqlite, path);
  if (lock !== null) held.add(lock);
  return lock;
}

function lockBySqlite({ DatabaseSync }: typeof Sqlite, path: string): HeldFolderLock | null {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec('BEGIN EXCLUSIVE');
    return { release: () => database.close() };
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    throw error;
  }
}

/** Locks with the program flock, which holds the lock until this process closes its end of a pipe. */
async function lockByProgram(path: string): Promise<HeldFolderLock | null> {
  const args = ['-n', '-x', path, 'sh', '-c', 'echo held; cat >/dev/null'];
  const child = spawn('flock', args, { stdio: ['pipe', 'pipe', 'ignore'], detached: true });
  const outcome = await new Promise<'held' | 'busy' | 'missing'>((resolve) => {
    child.once('error', () => resolve('missing'));
    child.once('exit', () => resolve('busy'));
    child.stdout.once('data', () => resolve('held'));
  });
  if (outcome === 'missing') {
    throw new Error(
      'Locking the data folder requires Node 22.13 or later, or the program flock. Install one of them.',
    );
  }
  if (outcome === 'busy') return null;
  child.unref();
  return { release: () => child.stdin.end() };
}

/** Writes the owner of the lock to the folder. */
async function claimed(lock: HeldFolderLock, ownerPath: string): Promise<FolderLock> {
  const release = (): void => {
    if (held.delete(lock)) lock.release();
  };
  try {
    await writeFile(ownerPath, `process ${process.pid} on ${hostname()}`, { mode: 0o600 });
  } catch (error) {
    release();
    throw error;
  }
  return {
    async release() {
      if (held.has(lock)) await rm(ownerPath, { force: true });
      release();
    },
  };
}

/** Locks a data folder. Throws if another process holds it, because two processes would each grant the whole limit. */
export async function lockFolder(dataDir: string): Promise<FolderLock> {
  const ownerPath = join(dataDir, 'serve.owner');
  const lockPath = join(dataDir, 'serve.lock');
  // SQLite would create the file with read permissions for other users.
  await (await open(lockPath, 'a', 0o600)).close();
  const deadline = performance.now() + LOCK_WAIT_MS;
  for (;;) {
    const lock = await tryLock(lockPath);
    if (lock !== null) {
      return claimed(lock, ownerPath);
    }
    if (performance.now() > deadline) {
      const owner = await readFile(ownerPath, 'utf8').catch(() => '');
      throw new Error(
        `Another Headgate${owner && ` (${owner})`} uses ${dataDir}. Two processes would each grant the whole limit. ` +
          'Stop the other one, or choose another folder with --data.',
      );
    }
    await delay(LOCK_LOOK_MS);
  }
}
