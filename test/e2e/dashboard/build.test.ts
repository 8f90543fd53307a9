// Wrangler builds the dashboard whenever it starts or deploys, maybe while another one serves the same files.
import { readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { BUILT_DASHBOARD, ROOT } from '../../../scripts/serve/build.ts';
import { runScript } from '../support/lifecycle-script.ts';

const VITE = join(ROOT, 'node_modules', 'vite', 'bin', 'vite.js');

/** Fails if the page is missing, or a file that it names. */
async function readWhole(): Promise<void> {
  const html = await readFile(join(BUILT_DASHBOARD, 'index.html'), 'utf8');
  expect(html).toContain('</html>');
  const named = [...html.matchAll(/(?:src|href)="\/admin\/([^"]+)"/g)].map(([, path = '']) => path);
  expect(named.some((path) => path.endsWith('.js'))).toBe(true);
  for (const path of named) {
    expect((await stat(join(BUILT_DASHBOARD, path))).size).toBeGreaterThan(0);
  }
}

it('a build leaves no moment without the page and its files, and nothing of older builds', async () => {
  const older = join(BUILT_DASHBOARD, 'assets', 'of-an-older-build.js');
  await writeFile(older, '');
  await utimes(older, 0, 0);
  const { ino } = await stat(join(BUILT_DASHBOARD, 'index.html'));
  const build = runScript([VITE, 'build', 'dashboard', '--logLevel', 'warn']);
  let isOver = false;
  const exited = build.exited.finally(() => {
    isOver = true;
  });
  while (!isOver) await readWhole();
  expect(await exited).toBe(0);
  expect((await stat(join(BUILT_DASHBOARD, 'index.html'))).ino).not.toBe(ino);
  await expect(stat(older)).rejects.toThrow('ENOENT');
});
