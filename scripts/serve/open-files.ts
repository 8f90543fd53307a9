import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Fewer than these a busy Headgate may need: two for each call, and three for each pool in use. */
const FILES_LOW = 4_096;

/**
 * What to say of how many files workerd may open, or null where they are enough. Node raises its own soft limit
 * to the hard one when it starts, and whatever it starts inherits that.
 */
export async function fewOpenFiles(): Promise<string | null> {
  if (process.platform === 'win32') return null;
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', 'ulimit -n']);
  const files = Number(stdout);
  // `unlimited` is no number.
  if (!(files < FILES_LOW)) return null;
  return (
    `workerd may open ${files} files, which is few: each call needs two, each pool in use three. ` +
    `Raise the hard limit (ulimit -Hn, LimitNOFILE, --ulimit nofile) to ${FILES_LOW} at least.`
  );
}
