/**
 * Counts what a call has waited for when its upstream is called: round trips to its pool and to the directory, which
 * answers late here, and reads of the copy for isolates that begin. In isolates that are new, busy, and idle for a
 * while: a Worker service each, on plain workerd. `--module <name>=<path>`, once or more: other builds besides.
 * `--idle <seconds>`, once or more: how long, which is the age of an isolate's copy of the configuration.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { importFirst, untilReady } from '../scripts/serve/admin-client.ts';
import { allowedHosts } from '../scripts/serve/allowed-hosts.ts';
import { BODY_MEMORY_MIB } from '../scripts/serve/body-memory.ts';
import { ensureBuilt } from '../scripts/serve/build.ts';
import { readCompatibility, workerdConfig } from '../scripts/serve/workerd-config.ts';
import { startWorkerd } from '../scripts/serve/workerd.ts';
import { buildAround } from '../test/support/build-worker.ts';
import { describePlace } from './support/place.ts';
import { printTable, printVerdicts, type ReportVerdict } from './support/report.ts';
import { median } from './support/rounds.ts';
import { startUpstream } from './support/upstream.ts';

const { values } = parseArgs({
  options: {
    module: { type: 'string', multiple: true, default: [] },
    idle: { type: 'string', multiple: true, default: ['6', '60'] },
  },
});

/** How late the directory answers. */
const LATE_MS = 100;

/** Isolates that are called, beside the one with the objects. */
const ISOLATES = 12;

/** How long a pool may take to stand on the directory's list, and to read its definition. */
const SETTLE_MS = 1_000;

const WRAPPER = {
  path: fileURLToPath(new URL('support/path-worker.js', import.meta.url)),
  makes: 'counting',
  classes: ['DirectoryObject', 'FeedObject'],
};
const ADMIN_TOKEN = 'bench-admin-token';
const NEW = 'new';
const BUSY = 'busy';
const KINDS = ['pool', 'directory', 'copy', 'ms'] as const;

/** Round trips and reads that one call had waited for, and how long. */
type PathPath = Readonly<Record<(typeof KINDS)[number], number>>;

interface PathSubject {
  readonly name: string;
  /** Whether there is a copy for isolates that begin. */
  readonly hasCopy: boolean;
  readonly ports: readonly number[];
  /** By the state of the isolate. */
  readonly ways: Map<string, PathPath[]>;
  stop(): Promise<void>;
}

async function call(port: number): Promise<PathPath> {
  const answer = await fetch(`http://127.0.0.1:${port}/bench/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-bench', 'content-type': 'application/json' },
    body: '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}]}',
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status}: ${text}`);
  return JSON.parse(answer.headers.get('bench-way') ?? '') as PathPath;
}

async function start(
  { name, hasCopy }: Pick<PathSubject, 'name' | 'hasCopy'>,
  module: string,
  upstreamUrl: string,
): Promise<PathSubject> {
  const dataDir = await mkdtemp(`${module}-`);
  const env = { ADMIN_TOKEN, BENCH_LATE_MS: `${LATE_MS}`, BENCH_COPY: hasCopy ? 'kept' : 'none' };
  const workers = ISOLATES + 1;
  const config = workerdConfig({
    module: relative(dataDir, module),
    objectsDir: join(dataDir, 'objects'),
    workers,
    bootId: 'bench',
    bodyMemoryMib: BODY_MEMORY_MIB,
    allowedHosts: await allowedHosts('127.0.0.1', []),
    cfHeader: 'bench-cf',
    dashboardDir: null,
    fromEnvironment: Object.keys(env),
    compatibility: await readCompatibility(),
  });
  const onLog = (line: string): void => console.error(`${name}: ${line}`);
  const workerd = await startWorkerd({ dataDir, config, workers, env, onLog });
  const [first = 0, ...ports] = workerd.ports;
  const target = { url: `http://127.0.0.1:${first}`, adminToken: ADMIN_TOKEN };
  // The other isolates stay new until they are called.
  if (!(await untilReady(target.url, () => false))) throw new Error(`${name} does not answer`);
  const upstreams = [{ id: 'bench', base_url: upstreamUrl, dialect: 'openai' }];
  const groups = [
    { name: 'bench', match: { upstreams: ['bench'] }, limits: { max_concurrency: 9 } },
  ];
  await importFirst(target, JSON.stringify({ upstreams, groups }), 'application/json');
  // The pool gets on the directory's list by its first success.
  await call(first);
  return { name, hasCopy, ports, ways: new Map(), stop: () => workerd.terminate(500) };
}

/** Calls each isolate of every subject once. */
async function callAll(subjects: readonly PathSubject[], state: string): Promise<void> {
  for (const { ways } of subjects) ways.set(state, []);
  for (let at = 0; at < ISOLATES; at += 1) {
    for (const { ports, ways } of subjects) ways.get(state)?.push(await call(ports[at] ?? 0));
  }
}

function rowsOf({ name, ways }: PathSubject): string[][] {
  const medians = (state: string): number[] =>
    KINDS.map((kind) => median((ways.get(state) ?? []).map((way) => way[kind])));
  const busyMs = medians(BUSY).at(-1) ?? NaN;
  return [...ways.keys()].map((state) => {
    const all = medians(state);
    return [`${name}, ${state}`, ...all.map(String), ((all.at(-1) ?? NaN) / busyMs).toFixed(1)];
  });
}

/** A call waits for its pool alone. In an isolate that begins it waits for the copy too, or for the directory where there is none. */
function judge({ name, hasCopy, ways }: PathSubject): ReportVerdict[] {
  return [...ways].map(([state, all]) => {
    const copy = state === NEW && hasCopy ? 1 : 0;
    const directory = state === NEW && !hasCopy ? 1 : 0;
    const held = all.filter(
      (way) => way.pool === 1 && way.directory === directory && way.copy === copy,
    );
    return {
      aim: `${name}, ${state}: waits for pool 1, directory ${directory}, copy ${copy}`,
      measured: `${held.length} of ${all.length} calls`,
      // On a busy machine an answer that nobody waits for may be there in time.
      holds: held.length > all.length / 2,
    };
  });
}

async function compare(dir: string, upstreamUrl: string): Promise<boolean> {
  const subjects: PathSubject[] = [];
  try {
    for (const named of [...values.module, `Headgate=${await ensureBuilt()}`]) {
      const [build = '', path = ''] = named.split('=');
      const module = await buildAround(resolve(path), WRAPPER, join(dir, build));
      for (const hasCopy of [true, false]) {
        const name = hasCopy ? build : `${build} without a copy`;
        subjects.push(await start({ name, hasCopy }, module, upstreamUrl));
      }
    }
    await delay(SETTLE_MS);
    for (const state of [NEW, BUSY]) await callAll(subjects, state);
    for (const seconds of values.idle.map(Number)) {
      await delay(seconds * 1_000);
      await callAll(subjects, `idle for ${seconds} s`);
    }
    printTable([['medians', ...KINDS, 'times busy'], ...subjects.flatMap(rowsOf)]);
    return printVerdicts(subjects.slice(-2).flatMap(judge));
  } finally {
    await Promise.all(subjects.map((subject) => subject.stop()));
  }
}

const dir = await mkdtemp(join(tmpdir(), 'headgate-path-'));
const upstream = await startUpstream();
try {
  console.log(`${describePlace(dir)}\nthe directory answers ${LATE_MS} ms late\n`);
  if (!(await compare(dir, upstream.url))) process.exitCode = 1;
} finally {
  await upstream.close();
  await rm(dir, { recursive: true, force: true });
}
