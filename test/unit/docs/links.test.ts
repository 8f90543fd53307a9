import { readFile } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { PAGES } from './pages.ts';

/** A page without its blocks of code, where brackets are no links and `#` is no heading. */
async function proseOf(path: string): Promise<string> {
  return (await readFile(path, 'utf8')).replaceAll(/^```[\s\S]*?^```/gm, '');
}

/** The fragment by which a heading is found, as GitHub makes it. */
function fragmentOf(heading: string): string {
  const kept = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, '');
  return kept.trim().replaceAll(' ', '-');
}

async function fragmentsOf(path: string): Promise<Set<string>> {
  const headings = (await proseOf(path)).matchAll(/^#{1,6} (.+)$/gm);
  return new Set([...headings].map(([, heading = '']) => fragmentOf(heading)));
}

/** Why a link of a page leads nowhere; null: it leads somewhere. */
async function brokenBy(page: string, link: string): Promise<string | null> {
  const [target = '', fragment] = link.split('#');
  const path = target === '' ? page : normalize(join(dirname(page), target));
  const isThere = await readFile(path).then(
    () => true,
    // A folder is there, though it cannot be read as a file.
    (error: NodeJS.ErrnoException) => error.code === 'EISDIR',
  );
  if (!isThere) return `${link}: no such file`;
  if (fragment === undefined || (await fragmentsOf(path)).has(fragment)) return null;
  return `${link}: no such heading`;
}

test.each(PAGES)('every link of %s leads to a file, and to a heading in it', async (page) => {
  const links = [...(await proseOf(page)).matchAll(/\]\(([^()\s]+)\)/g)].map(([, link]) => link);
  const local = links.filter((link) => link !== undefined && !/^[a-z]+:/.test(link));
  const broken = await Promise.all(local.map((link) => brokenBy(page, link ?? '')));
  expect(broken.filter((one) => one !== null)).toEqual([]);
});

test.each(PAGES)('%s names no repository or button of ours while there is none', async (page) => {
  const { repository } = JSON.parse(await readFile('package.json', 'utf8')) as {
    repository?: unknown;
  };
  const text = await readFile(page, 'utf8');
  if (repository !== undefined) return;
  expect(text).not.toMatch(/github\.com\/headgate|deploy\.workers\.cloudflare\.com/);
});

test('the data folder of the README is not committed by accident', async () => {
  const [, folder] = /--data \.\/(\w+)/.exec(await readFile('README.md', 'utf8')) ?? [];
  expect((await readFile('.gitignore', 'utf8')).split('\n')).toContain(`/${folder}/`);
});

test.each([
  ["Little's law, with numbers", 'littles-law-with-numbers'],
  ['Ceiling, pause, breaker', 'ceiling-pause-breaker'],
  ['`on_saturated` of a group', 'on_saturated-of-a-group'],
])('the heading %j is found by #%s', (heading, fragment) => {
  expect(fragmentOf(heading)).toBe(fragment);
});

test('a link to a heading that is not there is found', async () => {
  expect(await brokenBy('docs/budgets.md', 'platform-cost.md#prices')).toBeNull();
  expect(await brokenBy('docs/budgets.md', 'platform-cost.md#price')).not.toBeNull();
  expect(await brokenBy('docs/budgets.md', 'nowhere.md')).not.toBeNull();
});

interface AlertRule {
  readonly alert: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly runbook_url: string };
}

test('alerts.md lists every alert rule with its severity and its runbook, and no other', async () => {
  const file: unknown = parse(await readFile('ops/prometheus/headgate-alerts.yaml', 'utf8'));
  const rules = (file as { groups: { rules: AlertRule[] }[] }).groups.flatMap(
    (group) => group.rules,
  );
  const page = await readFile('docs/alerts.md', 'utf8');
  const rows = [...page.matchAll(/^\| (\w+) \| (`Headgate.*?) \| \[[^\]]+\]\(([\w.#-]+)\)/gm)];
  const listed = rows.flatMap(([, severity, names = '', link = '']) =>
    [...names.matchAll(/`(Headgate\w+)`/g)].map(([, alert]) => ({ alert, severity, link })),
  );
  const alerts = new Set(rules.map(({ alert }) => alert));
  expect(new Set(listed.map(({ alert }) => alert))).toEqual(alerts);
  expect(listed).toHaveLength(rules.length);
  for (const { alert, labels, annotations } of rules) {
    const row = listed.find((one) => one.alert === alert);
    expect([alert, labels.severity, annotations.runbook_url]).toEqual([
      alert,
      row?.severity,
      `{{ $externalLabels.headgate_docs }}docs/${row?.link}`,
    ]);
    expect(await brokenBy('docs/alerts.md', row?.link ?? '')).toBeNull();
  }
  const quoted = [...page.matchAll(/`(Headgate[A-Z]\w+)`/g)].map(([, name]) => name ?? '');
  expect(quoted.filter((name) => !alerts.has(name))).toEqual([]);
});
