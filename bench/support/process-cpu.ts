import { readFileSync } from 'node:fs';

/** Clock ticks of `/proc` in a second: fixed on Linux, whatever the kernel's own timer. */
const TICKS_PER_S = 100;

/** User and system time of a process so far, all its threads together, in microseconds. */
export function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The program's name stands in brackets and may hold blanks.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  return (ticks / TICKS_PER_S) * 1_000_000;
}

/** The same of several processes together. */
export function cpuOfAll(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + cpuOf(pid), 0);
}
