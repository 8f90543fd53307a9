import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';

async function pagesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder);
  return names.filter((name) => name.endsWith('.md')).map((name) => `${folder}/${name}`);
}

/** Every page for people, as a path from the root of the repository. */
export const PAGES = [
  'README.md',
  'AGENTS.md',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'packages/client/README.md',
  'test/strict-upstream/README.md',
  ...(await pagesIn('docs')),
  ...(await pagesIn('design')),
  ...(await pagesIn('design/decisions')),
];

/** Pages that quote routes and commands of today. The changelog also names those that are gone. */
export const QUOTING_PAGES = PAGES.filter(
  (page) => page !== 'CHANGELOG.md' && page !== 'test/strict-upstream/README.md',
);

/** Lists what a page quotes: its inline code, and the lines of its blocks of code, continued lines joined. */
export function quotesOf(page: string): string[] {
  const text = readFileSync(page, 'utf8');
  const blocks = [
    ...text.matchAll(/^```[^\n]*\n([\s\S]*?)^```/gm),
    ...text.matchAll(/\n((?:\n {4}.*)+)/g),
  ];
  const prose = text.replaceAll(/^```[\s\S]*?^```/gm, '');
  const inline = [...prose.matchAll(/`([^`]+)`/g)].map(([, code = '']) =>
    code.replaceAll('\n', ' '),
  );
  const lines = blocks.flatMap(([, code = '']) => code.replaceAll(/\\\n\s*/g, ' ').split('\n'));
  return [...inline, ...lines.map((line) => line.trim()).filter((line) => line !== '')];
}
