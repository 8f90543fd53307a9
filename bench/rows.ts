/**
 * Counts what a group's object writes: rows as the statements themselves report them, bytes bound, statements
 * and turns, for a call. On plain workerd, in a Worker around the built one, so that any build can be measured
 * without a change of it. `--module <name>=<path>`, once or more: other builds than the project's, a column
 * each; the last is judged. `--only <text>`: the groups whose names contain it. `--quick`: a short run that
 * judges nothing.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureBuilt } from '../scripts/serve/build.ts';
import { describePlace } from './support/place.ts';
import { printVerdicts } from './support/report.ts';
import { printRows, type Outcomes } from './support/rows-report.ts';
import {
  measureRestart,
  printRestart,
  restartGroup,
  type Restart,
} from './support/rows-restart.ts';
import { LOADS, LONE_CALLS, type RowsScenario, type Written } from './support/rows-scenarios.ts';
import { buildCounting, startRows, type Build, type RowsSubject } from './support/rows-subject.ts';
import { judge } from './support/rows-verdicts.ts';
import { startUpstream } from './support/upstream.ts';

const { values } = parseArgs({
  options: {
    module: { type: 'string', multiple: true, default: [] },
    only: { type: 'string', default: '' },
    quick: { type: 'boolean', default: false },
  },
});

/** Sizes of the groups that are started anew: one that many have, and one that few have. */
const LEASES = values.quick ? [500] : [4_000, 20_000];

const isMeant = (group: string): boolean => group.includes(values.only);

const meant = (scenarios: Readonly<Record<string, RowsScenario>>): RowsScenario[] =>
  Object.values(scenarios).filter(({ group }) => isMeant(group.name));

async function buildsIn(dir: string): Promise<Build[]> {
  const named = values.module.map((text) => {
    const [name = '', ...path] = text.split('=');
    if (path.length === 0) throw new Error(`${text}: expected <name>=<path>`);
    return { name, path: resolve(path.join('=')) };
  });
  if (new Set(named.map(({ name }) => name)).size < named.length) {
    throw new Error('two builds have the same name');
  }
  if (named.length === 0) named.push({ name: 'headgate', path: await ensureBuilt() });
  return Promise.all(named.map(({ name, path }) => buildCounting(name, path, dir)));
}

async function runOn(
  subjects: readonly RowsSubject[],
  scenario: RowsScenario,
): Promise<[RowsScenario, Outcomes]> {
  const outcomes = new Map<string, Written>();
  for (const subject of subjects) {
    outcomes.set(subject.name, await scenario.run(subject, values.quick));
  }
  return [scenario, outcomes];
}

/** Calls that come now and then take no time from each other: those of all builds at once. */
async function runSparse(subjects: readonly RowsSubject[]): Promise<[RowsScenario, Outcomes][]> {
  return Promise.all(
    meant(LONE_CALLS).map(async (scenario) => {
      const each = subjects.map(
        async (subject) => [subject.name, await scenario.run(subject, values.quick)] as const,
      );
      return [scenario, new Map(await Promise.all(each))] as [RowsScenario, Outcomes];
    }),
  );
}

async function measureRows(
  builds: readonly Build[],
  upstreamUrl: string,
): Promise<Map<RowsScenario, Outcomes>> {
  const groups = [...meant(LONE_CALLS), ...meant(LOADS)].map(({ group }) => group);
  const results = new Map<RowsScenario, Outcomes>();
  if (groups.length === 0) return results;
  const subjects: RowsSubject[] = [];
  const keep = ([scenario, outcomes]: [RowsScenario, Outcomes]): void => {
    results.set(scenario, outcomes);
    printRows(scenario, outcomes);
  };
  try {
    for (const build of builds) {
      subjects.push(await startRows(build, 'rows', upstreamUrl, groups));
    }
    for (const result of await runSparse(subjects)) keep(result);
    for (const scenario of meant(LOADS)) keep(await runOn(subjects, scenario));
  } finally {
    await Promise.all(subjects.map(({ serve }) => serve.kill9()));
  }
  return results;
}

async function measureRestarts(
  builds: readonly Build[],
  upstreamUrl: string,
): Promise<Map<number, ReadonlyMap<string, Restart>>> {
  const results = new Map<number, ReadonlyMap<string, Restart>>();
  for (const leases of LEASES.filter((each) => isMeant(restartGroup(each).name))) {
    const outcomes = new Map<string, Restart>();
    for (const build of builds) {
      outcomes.set(build.name, await measureRestart(build, upstreamUrl, leases));
    }
    printRestart(leases, outcomes);
    results.set(leases, outcomes);
  }
  return results;
}

async function main(): Promise<boolean> {
  const dir = await mkdtemp(join(tmpdir(), 'headgate-bench-'));
  const upstream = await startUpstream();
  try {
    console.log(describePlace(dir));
    const builds = await buildsIn(dir);
    const rows = await measureRows(builds, upstream.url);
    const restarts = await measureRestarts(builds, upstream.url);
    if (rows.size + restarts.size === 0) throw new Error(`no group is called ${values.only}`);
    if (values.quick) {
      console.log('\nA quick run: too short to judge by.');
      return true;
    }
    const judged = builds.at(-1)?.name ?? '';
    return printVerdicts(judge(judged, rows, restarts));
  } finally {
    await upstream.close();
    await rm(dir, { recursive: true, force: true });
  }
}

if (!(await main())) process.exitCode = 1;
