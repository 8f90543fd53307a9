import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { MUTATIONS } from './mutations/list.ts';
import type { Mutation } from './mutations/mutation.ts';
import { Trial, type Verdict } from './mutations/trial.ts';

/**
 * Shows that the tests of the core would notice if it were wrong: applies one change after the other to a
 * copy of the source, and fails unless a test fails on each. Arguments choose the suites to try it with,
 * `--only <text>` the mutations with that in their name or file.
 */
const { values, positionals: chosen } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string', default: '' } },
});
const mutations = MUTATIONS.filter(({ name, file }) => `${file}: ${name}`.includes(values.only));
// The model's histories are new each time: a mutation that a hundred of them pass by gets more.
const model = ['test/model', 'test/model', 'test/model'];
const suites = chosen.length > 0 ? chosen : ['test/unit/core', ...model];

const folder = await mkdtemp(join(tmpdir(), 'headgate-mutations-'));
try {
  process.exitCode = (await tryAll()) ? 0 : 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function tryAll(): Promise<boolean> {
  const trials = await Promise.all(
    Array.from({ length: availableParallelism() }, (_, index) =>
      Trial.in(join(folder, String(index))),
    ),
  );
  const untouched = await trials[0]?.run(suites);
  if (untouched?.kind !== 'survived') {
    console.error('The tests fail on the core as it is:', untouched);
    return false;
  }
  const waiting = [...mutations];
  const verdicts = new Map<Mutation, Verdict>();
  const work = trials.map(async (trial) => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      verdicts.set(next, await trial.try(next, suites));
    }
  });
  await Promise.all(work);
  return report(verdicts);
}

function report(verdicts: ReadonlyMap<Mutation, Verdict>): boolean {
  const width = Math.max(...mutations.map(({ name }) => name.length));
  let killed = 0;
  for (const mutation of mutations) {
    const verdict = verdicts.get(mutation) ?? { kind: 'broken', why: 'it was not tried' };
    if (verdict.kind === 'killed') killed += 1;
    console.log(`${mutation.name.padEnd(width)}  ${inWords(verdict)}`);
  }
  console.log(`\n${killed} of ${mutations.length} mutations were noticed.`);
  return killed === mutations.length;
}

function inWords(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'killed':
      return verdict.by;
    case 'survived':
      return 'SURVIVED';
    case 'broken':
      return `BROKEN: ${verdict.why}`;
  }
}
