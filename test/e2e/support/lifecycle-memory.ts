import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const SAMPLE_EVERY_MS = 50;

/** Resident memory of a process in MiB. */
export async function residentMiB(pid: number): Promise<number> {
  if (process.platform === 'linux') {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) / 1_024;
  }
  const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(pid)]);
  return Number(stdout) / 1_024;
}

/** The largest resident memory of a process, in MiB, that was seen while `work` ran. */
export async function peakMiBDuring(pid: number, work: () => Promise<void>): Promise<number> {
  let isDone = false;
  let peak = await residentMiB(pid);
  const working = work().finally(() => {
    isDone = true;
  });
  while (!isDone) {
    peak = Math.max(peak, await residentMiB(pid));
    await Promise.race([working, delay(SAMPLE_EVERY_MS)]);
  }
  await working;
  return peak;
}
