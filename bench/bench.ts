/**
 * Measures what Headgate costs, on plain workerd and in one run with what it is compared to, and says whether the aims
 * are met. `--quick`: a short run that judges nothing. `--only <scenario>`, once or more: not all of it. `--peers`:
 * beside HAProxy and Portkey, where they are installed. `--breakdown`: where the cost of a small call goes, part by part.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { groups } from './scenarios/groups.ts';
import { handover } from './scenarios/handover.ts';
import { idleGroups } from './scenarios/idle-groups.ts';
import { lag } from './scenarios/lag.ts';
import { members } from './scenarios/members.ts';
import { memory } from './scenarios/memory.ts';
import { roundTrips } from './scenarios/round-trips.ts';
import { smallCalls } from './scenarios/small-calls.ts';
import { streams } from './scenarios/streams.ts';
import type { Bench, BenchScenario, Peers } from './scenarios/scenario.ts';
import { runBreakdown } from './support/breakdown.ts';
import { OtherWork } from './support/other-work.ts';
import { findPeers } from './support/peers.ts';
import { describePlace } from './support/place.ts';
import { printVerdicts, type ReportVerdict } from './support/report.ts';

const SCENARIOS: readonly BenchScenario[] = [
  smallCalls,
  streams,
  memory,
  handover,
  lag,
  members,
  groups,
  idleGroups,
  roundTrips,
];

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    peers: { type: 'boolean', default: false },
    breakdown: { type: 'boolean', default: false },
  },
});

function chosen(): readonly BenchScenario[] {
  const { only } = values;
  const names = SCENARIOS.map(({ name }) => name);
  const unknown = only.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new TypeError(`--only ${unknown}: expected ${names.join(', ')}.`);
  }
  return only.length === 0 ? SCENARIOS : SCENARIOS.filter(({ name }) => only.includes(name));
}

async function runScenario(
  scenario: BenchScenario,
  dir: string,
  peers: Peers,
): Promise<ReportVerdict[]> {
  const started: Parameters<Bench['keep']>[0][] = [];
  const otherWork = new OtherWork();
  try {
    const verdicts = await scenario.run({
      dir: await mkdtemp(join(dir, `${scenario.name}-`)),
      isQuick: values.quick,
      peers,
      keep(thing) {
        started.push(thing);
        return thing;
      },
      roundIsOver: () => otherWork.round(),
    });
    otherWork.print();
    return verdicts;
  } finally {
    for (const thing of started.toReversed()) await thing.stop();
  }
}

async function main(): Promise<boolean> {
  const scenarios = chosen();
  const dir = await mkdtemp(join(tmpdir(), 'headgate-bench-'));
  try {
    console.log(describePlace(dir));
    if (values.breakdown) {
      await runBreakdown(dir, values.quick);
      return true;
    }
    const peers = findPeers(values.peers);
    const verdicts: ReportVerdict[] = [];
    for (const scenario of scenarios) verdicts.push(...(await runScenario(scenario, dir, peers)));
    const allHold = printVerdicts(verdicts);
    if (values.quick) console.log('\nA quick run: too short to judge by.');
    return allHold || values.quick;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

if (!(await main())) process.exitCode = 1;
