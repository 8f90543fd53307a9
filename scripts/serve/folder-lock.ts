import { spawn } from 'node:child_process';
import { open, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type * as Sqlite from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';

/** How long another process may take to let go of a folder, as at a restart. */
const LOCK_WAIT_MS = 2_000;
const LOCK_LOOK_MS = 50;

const SQLITE_BUSY = 5;

/** A data folder that this process holds. */
export interface FolderLock {
  release(): Promise<void>;
}

/** A lock that is held until it is let go of, or the process ends. */
interface HeldFolderLock {
  letGo(): void;
}

/** Locks that are held: one that nobody refers to would be let go with its garbage. */
const held = new Set<HeldFolderLock>();

/**
 * Takes a lock that the process holds and the kernel lets go of, however it ends: no file says that somebody is
 * there who is not. It holds between containers too, if they share the file system and the machine.
 * SQLite has the one lock for files that works alike everywhere, and Node from 22.13 on has SQLite. Null: another one has it.
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
    return { letGo: () => database.close() };
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    throw error;
  }
}

/** Takes it by flock, which holds it as long as a pipe is open whose end only this process has. */
async function lockByProgram(path: string): Promise<HeldFolderLock | null> {
  const args = ['-n', '-x', path, 'sh', '-c', 'echo held; cat >/dev/null'];
  const child = spawn('flock', args, { stdio: ['pipe', 'pipe', 'ignore'], detached: true });
  const outcome = await new Promise<'held' | 'busy' | 'missing'>((resolve) => {
    child.once('error', () => resolve('missing'));
    child.once('exit', () => resolve('busy'));
    child.stdout.once('data', () => resolve('held'));
  });
  if (outcome === 'missing') {
    throw new Error('To hold its data folder it needs Node 22.13 or newer, or the program flock.');
  }
  if (outcome === 'busy') return null;
  child.unref();
  return { letGo: () => child.stdin.end() };
}

/** Says in the folder who has it. */
async function claimed(lock: HeldFolderLock, ownerPath: string): Promise<FolderLock> {
  const letGo = (): void => {
    if (held.delete(lock)) lock.letGo();
  };
  try {
    await writeFile(ownerPath, `process ${process.pid} on ${hostname()}`, { mode: 0o600 });
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
  const lockPath = join(dataDir, 'serve.lock');
  // SQLite would create it readable for other users.
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
        `Another Headgate${owner && ` (${owner})`} has ${dataDir}. Two of them would each grant the whole limit.`,
      );
    }
    await delay(LOCK_LOOK_MS);
  }
}
