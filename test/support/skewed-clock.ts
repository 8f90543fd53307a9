import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const SOURCE = fileURLToPath(new URL('skewed-clock.c', import.meta.url));

/** A wall clock that a test sets, for processes that are started with its environment. */
export interface SkewedClock {
  readonly env: Readonly<Record<string, string>>;
  /** Moves the clock by as many seconds from the true time. */
  set(seconds: number): void;
  remove(): Promise<void>;
}

/** Builds the preload library. Null: this machine has no C compiler, or does not support preload libraries. */
export async function buildSkewedClock(): Promise<SkewedClock | null> {
  if (process.platform !== 'linux') return null;
  const folder = await mkdtemp(join(tmpdir(), 'headgate-clock-'));
  const library = join(folder, 'skewed-clock.so');
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    await promisify(execFile)('cc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE]);
  } catch {
    await remove();
    return null;
  }
  const file = join(folder, 'seconds');
  const set = (seconds: number): void => writeFileSync(file, String(seconds));
  set(0);
  return { env: { LD_PRELOAD: library, SKEW_FILE: file }, set, remove };
}
