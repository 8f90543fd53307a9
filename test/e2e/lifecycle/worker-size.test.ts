// The built Worker: every new isolate loads and parses all of it.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { ROOT } from '../../../scripts/serve/build.ts';

const WORKER = join(ROOT, 'dist/index.js');

/** Bytes of the compressed Worker. Raise it only for code that the Worker needs. */
const GZIP_BYTES_MAX = 470_000;

it('has at most its size', async () => {
  expect(gzipSync(await readFile(WORKER), { level: 9 }).byteLength).toBeLessThan(GZIP_BYTES_MAX);
});

it('contains only the sources of the Worker', async () => {
  const { sources } = JSON.parse(await readFile(`${WORKER}.map`, 'utf8')) as {
    readonly sources: readonly string[];
  };
  const own = sources.filter((path) => !path.includes('node_modules/'));
  expect(own.length).toBeGreaterThan(200);
  expect(own.filter((path) => !path.startsWith('../src/'))).toEqual([]);
});
