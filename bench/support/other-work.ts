import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { percent } from './report.ts';

/** Clock ticks so far: of the whole machine, and of this process with all that it started. */
interface Ticks {
  readonly all: number;
  readonly own: number;
  readonly at: number;
}

const TICKS_PER_MS = 0.1;

/** Ticks of the machine that somebody used, or that the host took for others. */
function machineTicks(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = line
    .split(/ +/)
    .slice(1)
    .map(Number);
  return user + nice + system + irq + softIrq + steal;
}

/** Fields of a process from its state on; null: it has just ended. */
function statOf(pid: string): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}

/** Ticks of this process and all below it, those included that have ended. */
function ownTicks(): number {
  const parents = new Map<string, string>();
  const ticks = new Map<string, number>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const fields = statOf(pid);
    if (fields === null) continue;
    parents.set(pid, fields[1] ?? '');
    const sum = fields.slice(11, 15).reduce((total, field) => total + Number(field), 0);
    ticks.set(pid, sum);
  }
  const me = String(process.pid);
  const isOwn = (pid: string | undefined): boolean =>
    pid === me || (pid !== undefined && isOwn(parents.get(pid)));
  return [...ticks].reduce((total, [pid, used]) => total + (isOwn(pid) ? used : 0), 0);
}

const readTicks = (): Ticks => ({
  all: machineTicks(),
  own: ownTicks(),
  at: performance.now(),
});

/** Notes how much of the machine others used, round by round: it says what the figures are worth. */
export class OtherWork {
  #before = readTicks();
  readonly #shares: number[] = [];

  /** Ends a round, and begins the next one. */
  round(): void {
    const now = readTicks();
    const before = this.#before;
    this.#before = now;
    const whole = (now.at - before.at) * TICKS_PER_MS * availableParallelism();
    const others = now.all - before.all - (now.own - before.own);
    this.#shares.push(Math.max(0, others / whole));
  }

  print(): void {
    const cores = availableParallelism();
    const list = this.#shares.map((share) => percent(share)).join(', ');
    console.log(`\n  Others used of the ${cores} cores, round by round: ${list}.`);
  }
}
