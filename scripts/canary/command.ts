import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { consentsOf, readArguments, usageOf, type CanaryArguments } from './arguments.ts';
import { CHECKS } from './checks.ts';
import { AdminRefused } from './groups.ts';
import { hide } from './hide.ts';
import { paceOf } from './pace.ts';
import { describePlan, planOf, refusedOf } from './plan.ts';
import { reportSchema, type CanaryReport } from './report-schema.ts';
import { textOf } from './report.ts';
import { runCanary } from './run.ts';
import { CheckNotPossible } from './upstream-use.ts';

/** Exit codes: a check failed, the canary could not run, or it was interrupted. */
const EXIT = { failed: 1, notRun: 2, stopped: 130 };

async function enterPressed(withinMs: number): Promise<void> {
  const lines = createInterface({ input: process.stdin });
  const pressed = new Promise<void>((resolve) => lines.once('line', () => resolve()));
  const over = new AbortController();
  const time = delay(withinMs, undefined, { signal: over.signal }).catch(() => undefined);
  await Promise.race([pressed, time]);
  over.abort();
  lines.close();
}

/** The first signal stops the run and removes its groups. A second one exits immediately. */
function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(EXIT.stopped);
      console.log('Stopping. Removing the groups of this run.');
      stop.abort();
    });
  }
  return stop.signal;
}

async function run(given: CanaryArguments, say: (line: string) => void): Promise<number> {
  const { upstream, model } = given;
  const choice = { only: given.only, consents: consentsOf(given) };
  const planned = planOf(CHECKS, choice);
  const pace = paceOf(given);
  say(describePlan(planned, pace, given.url, upstream));
  const refused = refusedOf(planned, choice);
  if (refused.length > 0) throw new CheckNotPossible(refused.join('\n'));
  if (given.dryRun) return 0;
  const signal = stopSignal();
  const report: CanaryReport = await runCanary({
    target: given,
    checks: CHECKS,
    choice,
    pace,
    signal,
    deployed: enterPressed,
    upstream: upstream === null || model === null ? null : { id: upstream, model },
    say: (line) => say(`  … ${line}`),
  });
  say(`\n${textOf(report)}`);
  if (given.json !== null) {
    const json = JSON.stringify(reportSchema.parse(report), null, 2);
    await writeFile(given.json, `${hide(json, secretsOf(given))}\n`);
  }
  if (signal.aborted) return EXIT.stopped;
  return report.passed ? 0 : EXIT.failed;
}

const secretsOf = (given: CanaryArguments) => [given.token, given.gatewayKey, given.providerKey];

async function runGiven(given: CanaryArguments): Promise<number> {
  const say = (line: string): void => console.log(hide(line, secretsOf(given)));
  try {
    return await run(given, say);
  } catch (error) {
    if (!(error instanceof CheckNotPossible || error instanceof AdminRefused)) throw error;
    say(error.message);
    return EXIT.notRun;
  }
}

/** Runs the command and returns its exit code. `program` is the command by which it was called, for the help. */
export async function runCanaryCommand(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  program: string,
): Promise<number> {
  try {
    const given = readArguments(args, env);
    if (given !== null) return await runGiven(given);
    console.log(usageOf(program));
    return 0;
  } catch (error) {
    const isUsage = error instanceof CheckNotPossible;
    console.error(isUsage ? `${error.message}\n\n${usageOf(program)}` : 'The canary failed:');
    if (!isUsage) console.error(error);
    return EXIT.notRun;
  }
}
