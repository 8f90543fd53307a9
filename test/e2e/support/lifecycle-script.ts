import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { ROOT } from '../../../scripts/serve/build.ts';
import { noteOutput } from '../../support/violations.ts';
import { until } from './lifecycle-wait.ts';

/** A script of the project that runs as a process of its own. */
export interface Script {
  readonly pid: number | undefined;
  /** Output so far, of both streams. */
  output(): string;
  /** Waits for something in its output; fails if it ends before. Answers with the match. */
  untilPrinted(pattern: RegExp, withinMs?: number): Promise<RegExpExecArray>;
  /** Types that line. */
  type(line: string): void;
  kill(signal: NodeJS.Signals): void;
  /** Resolves with the exit code, or null when a signal ended it. */
  readonly exited: Promise<number | null>;
  /** Ends it and what it has started, if they still run. */
  end(): Promise<void>;
}

/** Variables of a clean shell: nothing of the one that runs the tests may change what is tested. */
function cleanEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = ['PATH', 'HOME', 'TMPDIR', 'LANG'];
  const own = Object.fromEntries(kept.map((name) => [name, process.env[name]]));
  return { ...own, WRANGLER_SEND_METRICS: 'false', NO_COLOR: '1', ...env };
}

/** Runs a Node script of the project with the Node that runs the tests; `through` is what starts that, if not we. */
export function runScript(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  through: readonly string[] = [],
): Script {
  return runProgram([...through, process.execPath, ...args], env);
}

/** Runs any program, in the project's folder. */
export function runProgram(command: readonly string[], env: NodeJS.ProcessEnv): Script {
  const [program = '', ...rest] = command;
  const child: ChildProcess = spawn(program, rest, {
    cwd: ROOT,
    env: cleanEnv(env),
    stdio: ['pipe', 'pipe', 'pipe'],
    // A process group of its own, so that `end` reaches what the script has started too.
    detached: true,
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (data: Buffer) => {
      printed += data.toString('utf8');
    });
  }
  let isOver = false;
  const exited = new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null));
    child.once('close', (code) => {
      isOver = true;
      resolve(code);
    });
  });
  return {
    pid: child.pid,
    output: () => printed,
    exited,
    async untilPrinted(pattern, withinMs = 150_000) {
      let match = pattern.exec(printed);
      const isThere = (): boolean => {
        match = pattern.exec(printed);
        if (match === null && isOver) throw new Error(`It ended without ${pattern}:\n${printed}`);
        return match !== null;
      };
      await until(`it prints ${pattern}`, isThere, { withinMs, everyMs: 10 });
      if (match === null) throw new Error('unreachable');
      return match;
    },
    type: (line) => void child.stdin?.write(`${line}\n`),
    kill: (signal) => void child.kill(signal),
    async end() {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // Nothing of it is left.
      }
      await exited;
      noteOutput(printed);
    },
  };
}
