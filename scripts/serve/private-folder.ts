import type { Stats } from 'node:fs';
import { access, chmod, constants, lstat, mkdir, readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { plural } from '../../src/core/words/figures.ts';

/** Permissions of group and others. */
const OTHERS = 0o077;

/** Maximum entries whose permissions are read at a time. */
const AT_ONCE = 64;

const octal = (mode: number): string => (mode & 0o777).toString(8).padStart(4, '0');

/**
 * Creates a folder that only its owner may enter, or restricts an existing one and its contents: folders get the mode
 * 0700 and files 0600. `onNote` receives a sentence about each change. The folder is restricted before its contents are
 * read, so that no other user can swap an entry meanwhile. Links are not followed, because their targets may be
 * outside.
 *
 * Throws if an entry belongs to another user, because its owner could read or replace it regardless of its permissions.
 */
export async function makePrivate(folder: string, onNote: (line: string) => void): Promise<void> {
  await orUnusable(folder, () => mkdir(folder, { recursive: true, mode: 0o700 }));
  // Windows has no such permissions. Folders inherit those of their parent.
  const user = process.geteuid?.();
  if (user === undefined) return;
  const link = await lstat(folder);
  if (link.isSymbolicLink() && link.uid !== 0) requireOwner(folder, link, user);
  const before = await stat(folder);
  requireOwner(folder, before, user);
  if ((before.mode & OTHERS) !== 0) {
    await narrow(await realpath(folder), before);
    onNote(
      `Other users of this machine could reach ${folder} (mode ${octal(before.mode)}), which holds secrets. ` +
        'It now has mode 0700. If others have read it, replace the admin keys and rotate ADMIN_TOKEN.',
    );
  }
  const narrowed = await narrowBelow(folder, user, onNote);
  if (narrowed > 0) {
    onNote(
      `Changed the modes of ${plural(narrowed, 'entry', 'entries')} below ${folder} to 0600 and 0700.`,
    );
  }
  await orUnusable(folder, () => access(folder, constants.W_OK));
}

/** Accesses the data folder, and converts an error of the file system into advice for the operator. */
async function orUnusable(folder: string, act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    throw new Error(
      `The data folder ${folder} cannot be created or written to (${code}). Make it writable for this user, or choose ` +
        'another one with --data.',
      { cause: error },
    );
  }
}

function requireOwner(path: string, { uid }: Stats, user: number): void {
  if (uid === user) return;
  throw new Error(
    `${path} belongs to another user (uid ${uid}), and this process runs as uid ${user}. The owner could read the ` +
      `secrets in it or replace them. Run Headgate as uid ${uid}, run chown -R ${user} on the data folder, or ` +
      'choose another one with --data. Where a volume is mounted with its own owner, choose a folder below it.',
  );
}

async function narrow(path: string, before: Stats): Promise<void> {
  await chmod(path, before.isDirectory() ? 0o700 : 0o600).catch(ignore);
  const now = await statIfThere(path);
  if (now === null || (now.mode & OTHERS) === 0) return;
  throw new Error(
    `${path} has mode ${octal(now.mode)}, so other users can reach the secrets in it, and its file system does not ` +
      'allow changing that. Choose a data folder on another file system with --data.',
  );
}

/** Restricts everything below a folder, and returns the number of changed entries. */
async function narrowBelow(
  folder: string,
  user: number,
  onNote: (line: string) => void,
): Promise<number> {
  const names = await readdir(folder);
  const one = async (name: string): Promise<number> => {
    const path = join(folder, name);
    const entry = await statIfThere(path);
    if (entry === null) return 0;
    requireOwner(path, entry, user);
    if (entry.isSymbolicLink()) {
      onNote(`${path} is a link. The permissions of its target were not changed.`);
      return 0;
    }
    const isWide = (entry.mode & OTHERS) !== 0;
    if (isWide) await narrow(path, entry);
    const below = entry.isDirectory() ? await narrowBelow(path, user, onNote) : 0;
    return below + Number(isWide);
  };
  let narrowed = 0;
  for (let at = 0; at < names.length; at += AT_ONCE) {
    const counts = await Promise.all(names.slice(at, at + AT_ONCE).map(one));
    narrowed += counts.reduce((sum, count) => sum + count, 0);
  }
  return narrowed;
}

/** null if the entry was removed meanwhile, for example by a process that is ending. */
async function statIfThere(path: string): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function ignore(): void {
  // The resulting permissions are checked afterwards.
}
