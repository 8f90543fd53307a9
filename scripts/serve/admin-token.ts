import { randomBytes } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { cleanSecret } from '../../src/runtime/secrets.ts';

/** Name of the file in the data folder with the admin token that `serve` made. Its mode is 0600. */
const TOKEN_FILE = 'admin-token';

/** The admin token of a data folder. */
export interface FolderToken {
  readonly value: string;
  /** It was made just now, so no one has seen it yet. */
  readonly isNew: boolean;
}

const pathIn = (dataDir: string): string => join(resolve(dataDir), TOKEN_FILE);

/** Reads the admin token of a data folder. Null: there is none. Throws if the file cannot be read or used. */
export async function readFolderToken(dataDir: string): Promise<string | null> {
  const path = pathIn(dataDir);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    throw new Error(
      `The admin token in ${path} cannot be read (${code}). Run this as the user of serve, or remove ${path}: ` +
        'the next start makes another token.',
      { cause: error },
    );
  }
  const { value, fault } = cleanSecret(text);
  if (fault === null || fault === 'is not set') return value;
  throw new Error(
    `The admin token in ${path} ${fault}. Remove the file: the next start makes another token.`,
  );
}

/** Reads the admin token of a data folder, or makes one. The folder must be private already. */
export async function folderToken(dataDir: string): Promise<FolderToken> {
  const found = await readFolderToken(dataDir);
  if (found !== null) return { value: found, isNew: false };
  const path = pathIn(dataDir);
  const value = randomBytes(24).toString('base64url');
  const unfinished = `${path}.new`;
  try {
    await rm(unfinished, { force: true });
    await writeFile(unfinished, `${value}\n`, { mode: 0o600, flag: 'wx' });
    await rename(unfinished, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(
      `The admin token cannot be written to ${path} (${code}). Make the data folder writable for this user, choose ` +
        'another one with --data, or set ADMIN_TOKEN.',
      { cause: error },
    );
  }
  return { value, isNew: true };
}

/** Removes a token that no one has seen, because the start failed. */
export async function forgetFolderToken(dataDir: string): Promise<void> {
  await rm(pathIn(dataDir), { force: true });
}

/** Makes the address that signs a browser in. The token is in the fragment, which browsers send to no server. */
export function signInAddress(url: string, token: string): string {
  const address = new URL('/admin', url);
  // A browser does not open the address of all interfaces.
  if (['0.0.0.0', '[::]'].includes(address.hostname)) address.hostname = 'localhost';
  address.hash = `token=${encodeURIComponent(token)}`;
  return address.href;
}
