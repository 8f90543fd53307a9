import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Minimum for a busy Headgate: two for each call, and three for each pool in use. */
const FILES_LOW = 4_096;

/** Files that are open without any call, and some more. */
const FILES_OF_OUR_OWN = 64;

/**
 * Reads how many files we may open, and workerd as well; Infinity: as many as there are. Node raises its own soft limit
 * to the hard one when it starts, and whatever it starts inherits that.
 */
async function openFilesMax(): Promise<number> {
  if (process.platform === 'win32') return Infinity;
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', 'ulimit -n']);
  const files = Number(stdout);
  // `unlimited` is no number.
  return Number.isNaN(files) ? Infinity : files;
}

/** Warns of how few files workerd may open; null where they are enough. */
export async function fewOpenFiles(): Promise<string | null> {
  const files = await openFilesMax();
  if (files >= FILES_LOW) return null;
  return (
    `workerd may open ${files} files, which is few: each call needs two, each pool in use three. ` +
    `Raise the hard limit (ulimit -Hn, LimitNOFILE, --ulimit nofile) to ${FILES_LOW} at least.`
  );
}

/** Files of one client: two here, and as many in workerd, which when it is busy looks late at those that were closed. */
const FILES_PER_CLIENT = 3;

/**
 * Counts for how many connections of clients there is room, each of which needs one to workerd: were there
 * more, they would leave no file to serve any of them.
 */
export async function clientsMax(): Promise<number> {
  const files = await openFilesMax();
  return Math.floor(Math.max(files - FILES_OF_OUR_OWN, FILES_OF_OUR_OWN) / FILES_PER_CLIENT);
}
