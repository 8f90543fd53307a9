import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Minimum for a busy Headgate, which needs two files for each call and three for each pool in use. */
const FILES_LOW = 4_096;

/** Files that are open without any call, plus a reserve. */
const FILES_OF_OUR_OWN = 64;

/**
 * Returns the maximum number of open files of this process, which workerd inherits. Infinity means no limit. At its
 * start, Node raises its soft limit to the hard limit.
 */
async function openFilesMax(): Promise<number> {
  if (process.platform === 'win32') return Infinity;
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', 'ulimit -n']);
  const files = Number(stdout);
  // The output may be `unlimited`.
  return Number.isNaN(files) ? Infinity : files;
}

/** Returns a warning if workerd may open too few files, otherwise null. */
export async function fewOpenFiles(): Promise<string | null> {
  const files = await openFilesMax();
  if (files >= FILES_LOW) return null;
  return (
    `workerd may open only ${files} files. Each call needs two, and each pool in use needs three. ` +
    `Raise the hard limit (ulimit -Hn, LimitNOFILE, --ulimit nofile) to at least ${FILES_LOW}.`
  );
}

/** Files of one client. It uses two here and two in workerd, which closes them late when it is busy. */
const FILES_PER_CLIENT = 3;

/**
 * Returns the maximum number of client connections. Each needs a connection to workerd, so more clients would leave no
 * files to serve any of them.
 */
export async function clientsMax(): Promise<number> {
  const files = await openFilesMax();
  return Math.floor(Math.max(files - FILES_OF_OUR_OWN, FILES_OF_OUR_OWN) / FILES_PER_CLIENT);
}
