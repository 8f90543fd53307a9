// What a browser loads of the dashboard. A page that grows by a library is seen here, not by its users.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';

const DIST = join(import.meta.dirname, '../../../dashboard/dist');
const KB = 1_000;

/** Every built file by its path, as in `assets/index-1a2b3c4d.js`. */
const files = new Map(
  readdirSync(DIST, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [path.slice(DIST.length + 1), readFileSync(path)]),
);

function sumOf(paths: Iterable<string>, compress: (file: Buffer) => Buffer): number {
  return [...paths].reduce(
    (sum, path) => sum + compress(files.get(path) ?? Buffer.alloc(0)).length,
    0,
  );
}

const isImporter = (path: string): boolean => path.startsWith('assets/plan-import-');
/** The page of the API, and its documents for tools. */
const isApi = (path: string): boolean =>
  ['api.html', 'openapi.json', 'leases-openapi.json'].includes(path);

it('weighs less than 193 KB compressed, everything that any page may load taken together', () => {
  const pages = [...files.keys()].filter((path) => !isImporter(path) && !isApi(path));
  // Browsers take Brotli from Cloudflare. 4 KB are the texts of the table of gauges.
  expect(sumOf(pages, brotliCompressSync)).toBeLessThan(193 * KB);
});

it('weighs less than 50 KB compressed when a text is imported', () => {
  expect(sumOf([...files.keys()].filter(isImporter), brotliCompressSync)).toBeLessThan(50 * KB);
});

it('weighs less than 40 KB compressed on the page of the API', () => {
  expect(sumOf(['api.html'], brotliCompressSync)).toBeLessThan(40 * KB);
});

it('weighs less than 46 KB in gzip until the groups can be seen', () => {
  const html = files.get('index.html')?.toString() ?? '';
  const named = [...html.matchAll(/(?:src|href)="\/admin\/([^"]+)"/g)].map(([, path = '']) => path);
  expect(named.some((path) => path.endsWith('.js'))).toBe(true);
  expect(named.filter((path) => !files.has(path))).toEqual([]);
  expect(sumOf(['index.html', ...named], gzipSync)).toBeLessThan(46 * KB);
});
