import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { parseCLI, startVitest } from 'vitest/node';
import { ROOT } from './serve/build.ts';

/**
 * Runs the tests: `npm test` all but those that take minutes or want a browser, `npm test -- PATH…` some. It
 * takes what `vitest run` takes.
 * Failures are shown, and the counts; all the rest, as what the runtimes under test print of the errors
 * that they are led into, goes to a file.
 */
const PROJECTS = ['unit', 'model', 'workers', 'e2e', 'large'];
const LOG = process.env['TEST_LOG'] ?? join(ROOT, 'test.log');
const log = createWriteStream(LOG);
const show = process.stdout.write.bind(process.stdout);
const keep = ((chunk: string | Uint8Array) => log.write(chunk)) as typeof process.stdout.write;

/** The output of the reporter alone. Everybody else in this process writes to the file. */
class ReporterOutput extends Writable {
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    log.write(chunk);
    show(chunk);
    done();
  }

  /** The outputs of the processes that run tests are piped here, and end before the last word. */
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
show(`What was printed meanwhile is in ${LOG}.\n`);
log.end();
