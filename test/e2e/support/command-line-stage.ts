import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { ROOT } from '../../../scripts/serve/build.ts';
import { runToEnd, type Ended } from './command-line.ts';
import { openChat, type LifecycleOpenCall } from './lifecycle-call.ts';
import { practiceConfig, startStage, STAGE_TOKEN, type LifecycleStage } from './lifecycle-stage.ts';

/** The Headgate that commands manage, with one group `practice` of two slots. */
export let stage: LifecycleStage;

/** Calls of the running test. They leave at its end. */
export const open: LifecycleOpenCall[] = [];

/** Starts that Headgate for the tests of a file. */
export function useCommandLine(): void {
  beforeAll(async () => {
    stage = await startStage({ config: practiceConfig(2), upstream: { silentAfterChunks: 1 } });
  });

  afterEach(async () => {
    for (const call of open.splice(0)) call.leave('FIN');
    await stage.admin.untilGroup('practice', { in_use: 0, queued: 0 });
  });

  afterAll(() => stage.close());
}

interface CommandLineReport {
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
}

/** Runs a command to its end. */
export function headgate(
  args: readonly string[],
  { env = {}, input = '' }: CommandLineReport = {},
): Promise<Ended> {
  return runToEnd([process.execPath, 'scripts/headgate.ts', ...args], {
    cwd: ROOT,
    input,
    env: {
      PATH: process.env['PATH'],
      HEADGATE_URL: stage.url(),
      HEADGATE_TOKEN: STAGE_TOKEN,
      ...env,
    },
  });
}

export async function jsonOf<Answer>(...args: string[]): Promise<Answer> {
  const { code, out, err } = await headgate([...args, '--json']);
  expect([code, err]).toEqual([0, '']);
  return JSON.parse(out) as Answer;
}

/** Fills the group: two in flight, one waits. */
export async function fill(): Promise<void> {
  for (const label of ['one', 'two', 'three']) {
    open.push(openChat(stage.url(), { label, headers: { 'headgate-agent': `run-${label}` } }));
  }
  await stage.admin.untilGroup('practice', { in_use: 2, queued: 1 });
}

export async function file(name: string, text: string | Uint8Array): Promise<string> {
  const path = join(stage.dataDir, name);
  await writeFile(path, text);
  return path;
}

/** The current configuration with another limit. It sets leases, so that there is no note about them. */
export const documentWith = (limit: number): Promise<string> => {
  const document = Object.assign({ leases: 'keys' }, practiceConfig(limit)(stage.upstream));
  return file('wanted.json', JSON.stringify(document));
};
