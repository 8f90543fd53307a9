import { readdirSync, readlinkSync } from 'node:fs';
import { readConfig, writeConfig } from '../../scripts/serve/admin-client.ts';
import { callsFor, type LoadResult } from '../support/load.ts';
import {
  ADMIN_TOKEN,
  CALLERS,
  callEach,
  configOfGroups,
  requestsInTurn,
  startWithGroups,
} from '../support/many-groups.ts';
import { printTable, type ReportVerdict } from '../support/report.ts';
import { quantile } from '../support/rounds.ts';
import type { Subject } from '../support/subjects.ts';
import { startUpstream } from '../support/upstream.ts';
import type { Bench, BenchScenario } from './scenario.ts';

/** Reading what idle groups do, cold, and calls right after a change of all groups, against the usual p99. */
const AIMS = { readMs: 1_000, woken: 0, p99Times: 3 };

const GROUPS = { full: 1_000, quick: 100 };
const CALLS_MS = { full: 10_000, quick: 1_500 };
const READS = ['/admin/api/status', '/metrics'] as const;

/** One read by an operator, of a Headgate that has just started. */
interface IdleGroupsRead {
  readonly path: string;
  readonly ms: number;
  /** Objects that it brought to life, by their databases. */
  readonly woken: number;
}

/** Counts the pools that live, by the databases that workerd has open. */
function openDatabases({ pids }: Subject): number {
  const [pid = 0] = pids;
  const files = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return '';
    }
  });
  return new Set(files.filter((file) => /GroupObject.*\.sqlite$/.test(file))).size;
}

const urlOf = ({ port }: Subject): string => `http://127.0.0.1:${port}`;

async function read(subject: Subject, path: string): Promise<IdleGroupsRead> {
  const before = openDatabases(subject);
  const startedAt = performance.now();
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const answer = await fetch(`${urlOf(subject)}${path}`, { headers });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  await answer.arrayBuffer();
  const ms = performance.now() - startedAt;
  return { path, ms, woken: openDatabases(subject) - before };
}

type IdleGroupsStart = () => Promise<Subject>;

/** Reads each after a start of its own: nothing of the groups is in memory. */
async function readCold(start: IdleGroupsStart): Promise<IdleGroupsRead[]> {
  const reads: IdleGroupsRead[] = [];
  for (const path of READS) {
    const subject = await start();
    reads.push(await read(subject, path));
    await subject.stop();
  }
  return reads;
}

interface IdleGroupsChange {
  readonly usual: LoadResult;
  readonly after: LoadResult;
}

async function change(
  { keep, isQuick }: Bench,
  start: IdleGroupsStart,
  upstreamUrl: string,
): Promise<IdleGroupsChange> {
  const count = isQuick ? GROUPS.quick : GROUPS.full;
  const ms = isQuick ? CALLS_MS.quick : CALLS_MS.full;
  const subject = keep(await start());
  const request = requestsInTurn(count);
  const load = { port: subject.port, callers: CALLERS, mark: () => {}, request };
  await callEach(subject, count);
  const usual = await callsFor(load, 0, ms);
  const target = { url: urlOf(subject), adminToken: ADMIN_TOKEN };
  const etag = (await readConfig(target))?.etag ?? '';
  const body = JSON.stringify(configOfGroups(count, upstreamUrl, 1_999));
  await writeConfig(target, etag, body, 'application/json');
  return { usual, after: await callsFor(load, 0, ms) };
}

function print(count: number, reads: readonly IdleGroupsRead[], changed: IdleGroupsChange): void {
  console.log(`\n${count} groups that were called before\n`);
  printTable([
    ['cold', 'ms', 'objects woken'],
    ...reads.map(({ path, ms, woken }) => [path, ms.toFixed(0), String(woken)]),
  ]);
  console.log(`\nCalls to all of them in turn, ${CALLERS} callers\n`);
  printTable([
    ['', 'calls', 'p50 ms', 'p99 ms'],
    ...Object.entries(changed).map(([when, { calls, latenciesMs }]) => [
      when === 'usual' ? 'usual' : 'right after a PUT of all groups',
      String(calls),
      ...[0.5, 0.99].map((part) => quantile(latenciesMs, part).toFixed(1)),
    ]),
  ]);
}

function judge(
  reads: readonly IdleGroupsRead[],
  { usual, after }: IdleGroupsChange,
): ReportVerdict[] {
  const times = quantile(after.latenciesMs, 0.99) / quantile(usual.latenciesMs, 0.99);
  return [
    ...reads.flatMap(({ path, ms, woken }) => [
      {
        aim: `${path}, cold: at most ${AIMS.readMs} ms`,
        measured: `${ms.toFixed(0)} ms`,
        holds: ms <= AIMS.readMs,
      },
      {
        aim: `${path}, cold: wakes no group that is idle`,
        measured: String(woken),
        holds: woken <= AIMS.woken,
      },
    ]),
    {
      aim: `calls right after a change of all groups: p99 at most ${AIMS.p99Times} times the usual`,
      measured: `${times.toFixed(2)} times`,
      holds: times <= AIMS.p99Times,
    },
  ];
}

export const idleGroups: BenchScenario = {
  name: 'idle-groups',
  async run(bench) {
    const { dir, keep, isQuick, roundIsOver } = bench;
    const upstream = await startUpstream();
    keep({ stop: () => upstream.close() });
    const count = isQuick ? GROUPS.quick : GROUPS.full;
    const name = `${count} groups`;
    const start = (): Promise<Subject> =>
      startWithGroups(name, count, { dir, upstreamUrl: upstream.url });

    const first = await start();
    await callEach(first, count);
    await first.stop();
    roundIsOver();
    const reads = await readCold(start);
    roundIsOver();
    const changed = await change(bench, start, upstream.url);
    roundIsOver();

    print(count, reads, changed);
    return judge(reads, changed);
  },
};
