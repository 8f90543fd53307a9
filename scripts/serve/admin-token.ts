import { randomBytes } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { cleanSecret } from '../../src/runtime/secrets.ts';

/** File in the data folder with the generated admin token. Its mode is 0600. */
const TOKEN_FILE = 'admin-token';

export interface FolderToken {
  readonly value: string;
  /** Whether it was generated at this start, so that it has not been shown yet. */
  readonly isNew: boolean;
}

const pathIn = (dataDir: string): string => join(resolve(dataDir), TOKEN_FILE);

/**
 * Reads the admin token of a data folder. null if there is none. Throws if the file is unreadable or its token
 * unusable.
 */
export async function readFolderToken(dataDir: string): Promise<string | null> {
  const path = pathIn(dataDir);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    throw new Error(
      `The admin token in ${path} cannot be read (${code}). Run this command as the user of serve, or remove ${path}. ` +
        'The next start generates a new token.',
      { cause: error },
    );
  }
  const { value, fault } = cleanSecret(text);
  if (fault === null || fault === 'is not set') return value;
  throw new Error(
    `The admin token in ${path} ${fault}. Remove the file. The next start generates a new token.`,
  );
}

/** Reads the admin token of a data folder, or generates one. The folder must already be private. */
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

/** Removes a generated token that was never shown because the start failed. */
export async function forgetFolderToken(dataDir: string): Promise<void> {
  await rm(pathIn(dataDir), { force: true });
}

/** Returns the URL that signs in a browser. The token is in the fragment, which browsers never send to a server. */
export function signInAddress(url: string, token: string): string {
  const address = new URL('/admin', url);
  // Browsers cannot open the wildcard address.
  if (['0.0.0.0', '[::]'].includes(address.hostname)) address.hostname = 'localhost';
  address.hash = `token=${encodeURIComponent(token)}`;
  return address.href;
}
