import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { residentMiB } from '../../test/e2e/support/lifecycle-memory.ts';
import { printTable } from './report.ts';
import { startRows, type Build, type RowsGroup, type RowsSubject } from './rows-subject.ts';

/** How long an instance may take to answer before that counts as never. */
const NEVER_MS = 30_000;

/** The same for all holders to have their leases again: they come through one thread, as does the object. */
const NEVER_RESUMED_MS = 100_000;

/** How long until a group is asked again. */
const RETRY_MS = 20;

/** Resets in a row, that of the process among them. */
const RESETS = 10;

/** How long the process may rest before its memory is read. */
const SETTLE_MS = 3_000;

/** How soon a group was back. Null: not within `NEVER_MS`. */
type Back = {
  /** Milliseconds to its first answer of whatever kind. */
  readonly answerMs: number;
  /** Milliseconds to the first slot that it granted. */
  readonly slotMs: number;
} | null;

/** How a group with many leases comes back. */
export interface Restart {
  readonly leases: number;
  readonly kibPerLease: number;
  /** After a reset under living holders. */
  readonly reset: Back;
  /** Milliseconds from that reset until every holder has its lease from the new instance; null: not in time. */
  readonly resumedMs: number | null;
  /** After a new process has started, whose holders are dead. */
  readonly restart: Back;
  /** The longest of the resets in a row after that. */
  readonly worst: Back;
  /** Slots in use after all of them, as the group tells. */
  readonly inUse: string;
}

/** The group that holds so many leases, and has room for half as many again. */
export const restartGroup = (leases: number): RowsGroup => ({
  name: `restart-${leases}`,
  limits: { max_concurrency: leases * 1.5 },
});

const message = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** Asks until a slot is granted. */
async function untilGranted(subject: RowsSubject, group: string, from: number): Promise<Back> {
  let answerMs: number | null = null;
  let last = 'no answer';
  while (performance.now() - from < NEVER_MS) {
    try {
      const leftMs = Math.ceil(from + NEVER_MS - performance.now());
      const response = await subject.ask(`/try?group=${group}`, AbortSignal.timeout(leftMs));
      const isGranted = await response.json();
      const tookMs = performance.now() - from;
      answerMs ??= tookMs;
      if (isGranted === true) return { answerMs, slotMs: tookMs };
      last = 'refused';
    } catch (error) {
      answerMs = null;
      last = message(error);
    }
    await delay(RETRY_MS);
  }
  console.log(`\n  ${subject.name}, ${group}: no slot in ${NEVER_MS / 1_000} s; at last: ${last}`);
  return null;
}

async function reset(subject: RowsSubject, group: string): Promise<Back> {
  const from = performance.now();
  await subject.ask(`/reset?group=${group}`);
  return untilGranted(subject, group, from);
}

/** Leases that are held as long as `stop` is not called. */
interface RowsRestartHeld {
  /** Resolves with the next line that the holders tell. */
  next(): Promise<string>;
  stop(): void;
}

async function hold(subject: RowsSubject, group: string, leases: number): Promise<RowsRestartHeld> {
  const stopped = new AbortController();
  const { body } = await subject.ask(`/hold?group=${group}&leases=${leases}`, stopped.signal);
  if (body === null) throw new Error('no body');
  const input = Readable.fromWeb(body);
  input.on('error', () => undefined);
  const lines = createInterface({ input })[Symbol.asyncIterator]();
  const held = {
    async next() {
      const { value, done } = await lines.next();
      if (done === true) throw new Error('the holders have ended');
      return value;
    },
    stop: () => stopped.abort(),
  };
  await held.next();
  return held;
}

async function inUse(subject: RowsSubject, group: string): Promise<string> {
  const response = await subject.ask(`/status?group=${group}`).catch(message);
  if (typeof response === 'string') return response;
  const status = (await response.json()) as Record<string, unknown>;
  const { in_use: held, unclaimed: orphaned } = status;
  const [all, ofThem] = [held, orphaned].map((figure) => JSON.stringify(figure));
  return ofThem === undefined ? `${all}` : `${all}, unclaimed ${ofThem}`;
}

/** Fills the group and resets its object; kills the process in the end. */
async function underHolders(
  subject: RowsSubject,
  leases: number,
): Promise<Pick<Restart, 'kibPerLease' | 'reset' | 'resumedMs'>> {
  const { name } = restartGroup(leases);
  await untilGranted(subject, name, performance.now());
  const pid = subject.serve.workerdPid();
  const before = await residentMiB(pid);
  let held: RowsRestartHeld | null = null;
  try {
    held = await hold(subject, name, leases);
    await delay(SETTLE_MS);
    const kibPerLease = (((await residentMiB(pid)) - before) * 1_024) / leases;
    const from = performance.now();
    const back = await reset(subject, name);
    if (back === null) return { kibPerLease, reset: back, resumedMs: null };
    const late = delay(NEVER_RESUMED_MS, null, { ref: false });
    const line = await Promise.race([held.next(), late]);
    const resumedMs = line === null ? null : performance.now() - from;
    return { kibPerLease, reset: back, resumedMs };
  } finally {
    held?.stop();
    await subject.serve.kill9();
  }
}

/** Fills a group with leases, and measures how it comes back from resets of its object and of the process. */
export async function measureRestart(
  build: Build,
  upstreamUrl: string,
  leases: number,
): Promise<Restart> {
  const group = restartGroup(leases);
  const start = (): Promise<RowsSubject> => startRows(build, group.name, upstreamUrl, [group]);
  const first = await start();
  const alive = await underHolders(first, leases);
  const second = await start();
  try {
    const restart = await untilGranted(second, group.name, performance.now());
    let worst = restart;
    for (let count = 1; count < RESETS && worst !== null; count += 1) {
      const back = await reset(second, group.name);
      worst = back === null || back.slotMs > worst.slotMs ? back : worst;
    }
    return { leases, ...alive, restart, worst, inUse: await inUse(second, group.name) };
  } finally {
    await second.serve.kill9();
  }
}

const shown = (back: Back): string =>
  back === null ? 'never' : `${back.slotMs.toFixed(0)} (${back.answerMs.toFixed(0)})`;

/** Prints how groups of so many leases came back, a column for each build. */
export function printRestart(leases: number, outcomes: ReadonlyMap<string, Restart>): void {
  const line = (name: string, figure: (each: Restart) => string): string[] => [
    name,
    ...[...outcomes.values()].map(figure),
  ];
  console.log(`\nA group with ${leases.toLocaleString('en')} leases is started anew\n`);
  printTable([
    ['', ...outcomes.keys()],
    line('memory of a lease, its holder included', (each) => `${each.kibPerLease.toFixed(1)} KiB`),
    line('reset under living holders: ms to a slot (to an answer)', (each) => shown(each.reset)),
    line('  all holders have resumed', ({ resumedMs }) => resumedMs?.toFixed(0) ?? 'never'),
    line('new process, holders dead: ms to a slot (to an answer)', (each) => shown(each.restart)),
    line(`  the longest of ${RESETS} in a row`, (each) => shown(each.worst)),
    line('  slots in use after them', (each) => each.inUse),
  ]);
}
