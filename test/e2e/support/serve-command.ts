import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { createAdmin } from './lifecycle-admin.ts';
import type { Script } from './lifecycle-script.ts';
import { runScript } from './lifecycle-script.ts';
import { practiceConfig, STAGE_TOKEN } from './lifecycle-stage.ts';

/** The folder of the running test. The server keeps its data in a folder inside it. */
export let dataDir: string;

export let upstream: StrictUpstream;
const scripts: Script[] = [];

/** Gives each test of a file an empty folder and an upstream. Ends what the test has started. */
export function useServeCommand(): void {
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'headgate-serve-'));
    upstream = await startStrictUpstream();
  });

  afterEach(async () => {
    await Promise.all(scripts.splice(0).map((script) => script.end()));
    await upstream.close();
    await rm(dataDir, { recursive: true, force: true });
  });
}

interface Served {
  readonly script: Script;
  readonly url: string;
}

export function serve(args: readonly string[], env: NodeJS.ProcessEnv): Script {
  const data = ['--port', '0', '--data', join(dataDir, 'data')];
  const script = runScript(['scripts/serve.ts', ...data, ...args], env);
  scripts.push(script);
  return script;
}

export async function untilServed(script: Script): Promise<Served> {
  const [, url = ''] = await script.untilPrinted(/listens on (http:\S+),/);
  return { script, url };
}

/** Serves with the admin routes open. */
export const startServed = (...args: readonly string[]): Promise<Served> =>
  untilServed(serve(args, { ADMIN_TOKEN: STAGE_TOKEN }));

export async function configFile(name: string, text: string): Promise<string> {
  const path = join(dataDir, name);
  await writeFile(path, text);
  return path;
}

export const jsonFile = (limit: number): Promise<string> =>
  configFile('headgate.json', JSON.stringify(practiceConfig(limit)(upstream)));

export async function limitOf(url: string): Promise<number | null> {
  return (await createAdmin(() => url, STAGE_TOKEN).group('practice')).limit.effective;
}
