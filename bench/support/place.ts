import { spawnSync } from 'node:child_process';
import { cpus, release, totalmem } from 'node:os';

/** Where the figures come from: they say nothing without it. */
export function describePlace(dir: string): string {
  const [cpu] = cpus();
  const found = spawnSync('stat', ['-f', '-c', '%T', dir], { encoding: 'utf8' });
  const fileSystem = found.status === 0 ? found.stdout.trim() : 'unknown';
  const gigabytes = Math.round(totalmem() / 2 ** 30);
  return [
    `${cpus().length} cores (${cpu?.model.trim() ?? 'unknown'}), ${gigabytes} GB, kernel ${release()}`,
    `databases on ${dir}, file system ${fileSystem}`,
  ].join('\n');
}
