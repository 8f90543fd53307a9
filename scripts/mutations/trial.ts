import { spawn } from 'node:child_process';
import { cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Mutation } from './mutation.ts';

/** What the tests of the core need. */
const COPIED = [
  'tsconfig.json',
  'src/core',
  'test/unit/core',
  'test/model',
  'test/support/core-builders.ts',
];

/** Longer than every test together takes; a mutant that hangs has not been noticed by a test. */
const TIME_OUT_MS = 120_000;

/** Threads, because they end with their process, even one that spins. */
const CONFIG = `export default {
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: ${TIME_OUT_MS},
    fileParallelism: false,
    pool: 'threads',
  },
};
`;

export type Verdict =
  | { readonly kind: 'killed'; readonly by: string }
  | { readonly kind: 'survived' }
  /** The tests did not run, or did not end. */
  | { readonly kind: 'broken'; readonly why: string };

interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** A copy of the core and its tests, to be changed and tried. */
export class Trial {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Copies everything into a new folder. */
  static async in(folder: string): Promise<Trial> {
    await mkdir(folder, { recursive: true });
    for (const path of COPIED) await cp(path, join(folder, path), { recursive: true });
    await symlink(resolve('node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    await writeFile(join(folder, 'vitest.config.ts'), CONFIG);
    return new Trial(folder);
  }

  /** Runs the tests on the core with this one change; they stop at the first failure. */
  async try(mutation: Mutation, suites: readonly string[]): Promise<Verdict> {
    const path = join(this.#folder, 'src/core', mutation.file);
    const source = await readFile(path, 'utf8');
    const found = source.split(mutation.find).length - 1;
    if (found !== 1) return { kind: 'broken', why: `its text occurs ${found} times` };
    await writeFile(
      path,
      source.replace(mutation.find, () => mutation.replace),
    );
    try {
      return await this.run(suites);
    } finally {
      await writeFile(path, source);
    }
  }

  /** Runs the suites one after the other until a test fails. */
  async run(suites: readonly string[]): Promise<Verdict> {
    for (const suite of suites) {
      const verdict = await this.#runSuite(suite);
      if (verdict.kind !== 'survived') return verdict;
    }
    return { kind: 'survived' };
  }

  async #runSuite(suite: string): Promise<Verdict> {
    const output = join(this.#folder, 'report.json');
    await rm(output, { force: true });
    const status = await vitest(this.#folder, [suite, `--outputFile=${output}`]);
    if (status === 0) return { kind: 'survived' };
    if (status === null) return { kind: 'broken', why: `${suite} did not end` };
    const text = await readFile(output, 'utf8').catch(() => null);
    if (text === null) return { kind: 'broken', why: `${suite} did not run` };
    const { testResults } = JSON.parse(text) as Report;
    const results = testResults.flatMap(({ assertionResults }) => assertionResults);
    const failed = results.find((result) => result.status === 'failed');
    if (failed === undefined) return { kind: 'broken', why: `${suite} failed, but no test of it` };
    return { kind: 'killed', by: `${suite}: ${failed.fullName}` };
  }
}

/** The exit status, or null when it took too long. */
function vitest(folder: string, args: readonly string[]): Promise<number | null> {
  const script = resolve('node_modules/vitest/vitest.mjs');
  const options = ['run', '--bail=1', '--reporter=json', '--no-isolate', ...args];
  return new Promise((settle, fail) => {
    const child = spawn(process.execPath, [script, ...options], {
      cwd: folder,
      stdio: 'ignore',
      timeout: TIME_OUT_MS,
      killSignal: 'SIGKILL',
      env: { ...process.env, MODEL_SEED: '1', MODEL_SHRINK: 'no' },
    });
    child.on('error', fail);
    child.on('exit', (status) => settle(status));
  });
}
