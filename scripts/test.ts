/**
 * Runs the tests. `npm test` runs all except those that are slow or need a browser, and `npm test -- PATH…` runs some.
 * It accepts the arguments of `vitest run`. Failures and counts are shown. All other output, such as expected
 * errors that the runtimes under test print, is written to a file.
 */
import { createWriteStream, existsSync, readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { parseCLI, startVitest } from 'vitest/node';
import { ROOT } from './serve/build.ts';

/** Every file of a script under test is compiled once, not once per process. */
process.env['NODE_COMPILE_CACHE'] ??= join(ROOT, 'node_modules/.cache/compiled');
/** Objects under test write thousands of small files, which are cheaper in memory. */
const MEMORY = '/dev/shm';
const MEMORY_BYTES_MIN = 4e9;
/** Some tests install programs and run them. Containers often mount this folder so that nothing there can be run. */
const FORBIDS_PROGRAMS = /^\S+ \/dev\/shm \S+ \S*noexec/m;
if (existsSync(MEMORY) && !FORBIDS_PROGRAMS.test(readFileSync('/proc/mounts', 'utf8'))) {
  const { bavail, bsize } = statfsSync(MEMORY);
  if (bavail * bsize > MEMORY_BYTES_MIN) process.env['TMPDIR'] ??= MEMORY;
}
/** Properties of the model are tried with 10 % of their histories. `npm run test:model` tries them with all. */
process.env['MODEL_RUNS'] ??= '0.1';

const PROJECTS = ['unit', 'model', 'workers', 'e2e'];
const LOG = process.env['TEST_LOG'] ?? join(ROOT, 'test.log');
const log = createWriteStream(LOG);
const show = process.stdout.write.bind(process.stdout);
const keep = ((chunk: string | Uint8Array) => log.write(chunk)) as typeof process.stdout.write;

/** Receives the output of the reporter only. All other output of this process is written to the file. */
class ReporterOutput extends Writable {
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    log.write(chunk);
    show(chunk);
    done();
  }

  /** Ignored, because the outputs of test processes are piped here and end before the reporter has finished. */
  override end(): this {
    return this;
  }
}

process.stdout.write = keep;
process.stderr.write = keep;
const shown = new ReporterOutput();
const { filter, options } = parseCLI(['vitest', 'run', ...process.argv.slice(2)]);
await startVitest(
  'test',
  filter,
  { project: PROJECTS, reporters: ['minimal'], watch: false, ...options },
  {},
  { stdout: shown, stderr: shown },
);
show(`All other output is in ${LOG}.\n`);
log.end();
