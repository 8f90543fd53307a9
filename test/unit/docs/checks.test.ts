// The checks of prose and of type names find what they are for. Each runs in a small repository of its own.
import { execFile, execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

/** Runs a check over the given files, and returns its exit code and the lines that it prints. */
async function check(script: string, files: Readonly<Record<string, string>>) {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-check-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  execFileSync('git', ['init', '--quiet'], { cwd: folder });
  execFileSync('git', ['add', '.'], { cwd: folder });
  return new Promise<{ code: unknown; lines: string[] }>((done) => {
    execFile('node', [resolve('scripts', script)], { cwd: folder }, (error, out, err) => {
      done({ code: error?.code ?? 0, lines: `${err}${out}`.trim().split('\n') });
    });
  });
}

const LONG = `${'word '.repeat(36)}end.`;

test('phrases are found in documents, comments, strings, templates and page text, with their lines', async () => {
  const { code, lines } = await check('check-prose.ts', {
    'README.md': '# Title\n\nA call waits for nobody.\n\n`nobody` is a name here.\n',
    'src/a.ts':
      "/**\n * Asks anew.\n */\nexport const a = 'for want of room';\nexport const name = 'nobody';\nexport const b = `at ${a} slots at the most`;\n",
    'dashboard/b.tsx': 'export const B = () => <p>Ask whoever is there</p>;\n',
  });
  expect(code).toBe(1);
  expect(lines).toEqual([
    'README.md:3: nobody => a noun, it or they',
    'dashboard/b.tsx:1: whoever => a noun, it or they',
    'src/a.ts:2: anew => again, or from the start',
    'src/a.ts:4: for want of => if there is no',
    'src/a.ts:6: at the most => at most',
    'Files: 3, errors: 5, warnings: 0',
  ]);
});

test('wide lines of prose are errors, long sentences are warnings; tables and code are neither', async () => {
  const wide = `${'a wide line '.repeat(11)}`;
  const { code, lines } = await check('check-prose.ts', {
    'docs/a.md': `${wide}\n\n| ${wide} |\n\n\`\`\`\n${wide}\n\`\`\`\n`,
    'src/a.ts': `// ${wide}\nexport const a = '${wide}';\n`,
    'docs/b.md': `${LONG.slice(0, 100)}\n${LONG.slice(100)}\n`,
  });
  expect(code).toBe(1);
  expect(lines).toEqual([
    'docs/b.md:1: 37 words in a sentence',
    'docs/a.md:1: over 120 columns',
    'src/a.ts:1: over 120 columns',
    'Files: 3, errors: 2, warnings: 1',
  ]);
});

test('plain prose passes', async () => {
  const { code, lines } = await check('check-prose.ts', {
    'README.md': 'A call waits for a slot.\n',
  });
  expect({ code, lines }).toEqual({ code: 0, lines: ['Files: 1, errors: 0, warnings: 0'] });
});

test('a type name with two declarations, or a vague one, is found', async () => {
  const { code, lines } = await check('check-names.ts', {
    'src/a.ts':
      "import type { Slot, type Lease } from './b.ts';\nexport type Slot = number;\ninterface Told {}\n",
    'src/b.ts': 'export interface Slot extends Base {}\nexport class Lease<A> {}\n',
  });
  expect(code).toBe(1);
  expect(lines).toEqual([
    'Slot has 2 declarations: src/a.ts, src/b.ts',
    'Told in src/a.ts is too vague. Name the thing it describes.',
  ]);
});
