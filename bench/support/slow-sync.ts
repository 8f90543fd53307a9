import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('slow-sync.c', import.meta.url));

/** Delay that is added to every sync of the disk. */
export const ADDED_MS = 2;

/** The environment that makes a workerd's syncs slower, or why there is none. */
export type SlowSync =
  | { readonly ok: true; readonly env: NodeJS.ProcessEnv }
  | { readonly ok: false; readonly why: string };

/** Compiles the library that stands between workerd and the disk. workerd is linked dynamically. */
export function buildSlowSync(dir: string): SlowSync {
  if (process.platform !== 'linux') return { ok: false, why: 'only done on Linux' };
  const library = join(dir, 'slow-sync.so');
  const compiled = spawnSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE, '-ldl']);
  if (compiled.error !== undefined) return { ok: false, why: 'there is no C compiler (cc)' };
  if (compiled.status !== 0) return { ok: false, why: String(compiled.stderr) };
  const env = { LD_PRELOAD: library, SLOW_SYNC_US: String(ADDED_MS * 1_000) };
  return { ok: true, env };
}
