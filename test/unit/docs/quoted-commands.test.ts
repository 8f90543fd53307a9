// Every command that the docs quote exists, with its options: of `headgate`, of npm scripts, and of packages.
import { existsSync, readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { parseArgsStringToArgv } from 'string-argv';
import { expect, it } from 'vitest';
import { CANARY_OPTIONS } from '../../../scripts/canary/arguments.ts';
import { programOf } from '../../../scripts/cli/program.ts';
import { SERVE_OPTIONS } from '../../../scripts/serve/command.ts';
import { QUOTING_PAGES, quotesOf } from './pages.ts';

const ignore = (): void => undefined;
const PROGRAM = programOf({}, ignore, ignore);

/** Commands that read their options by themselves. */
const OWN_OPTIONS: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  serve: SERVE_OPTIONS,
  canary: CANARY_OPTIONS,
};

interface QuotedCommandsManifest {
  readonly scripts: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const MANIFEST = JSON.parse(readFileSync('package.json', 'utf8')) as QuotedCommandsManifest;

/** Commands of npm itself that the docs use. */
const OF_NPM = new Set(['ci', 'install', 'pack', 'publish']);

/** Words of a command up to a redirection or a comment. */
function wordsOf(text: string): string[] {
  const words = parseArgsStringToArgv(text.replace(/\s#\s.*$/, ''));
  const end = words.findIndex((word) => /^(?:[12]?>|<)$/.test(word));
  return end < 0 ? words : words.slice(0, end);
}

const isOption = (word: string): boolean => /^-{1,2}[a-z]/i.test(word);
const nameOf = (word: string): string => word.split('=')[0] ?? '';

/** Why words after `headgate` are no command; null: they are one. */
function faultOfHeadgate(words: readonly string[]): string | null {
  let command: Command = PROGRAM;
  const rest: string[] = [];
  for (const word of words) {
    const next = rest.length > 0 ? undefined : command.commands.find((one) => one.name() === word);
    if (next === undefined) rest.push(word);
    else command = next;
  }
  const [first] = rest;
  const isNamed = first === undefined || isOption(first) || /^[A-Z…]/.test(first);
  if (command.commands.length > 0 && !isNamed) return `no command ${first}`;
  const own = OWN_OPTIONS[command.name()];
  const unknown = rest
    .filter(isOption)
    .map(nameOf)
    .find((name) => {
      if (name === '--help' || name === '-h') return false;
      if (own !== undefined) return own[name.slice(2)] === undefined;
      const options = [...command.options, ...PROGRAM.options];
      return !options.some(
        ({ short, long }) => name === short || name === long || /^-\d/.test(name),
      );
    });
  return unknown === undefined ? null : `${command.name()} has no option ${unknown}`;
}

/** Why a script of npm is not there, or does not take an option behind `--`; null: it is fine. */
function faultOfScript(words: readonly string[]): string | null {
  const [name = '', ...args] = words.filter((word) => word !== '-s');
  const script = MANIFEST.scripts[name];
  // `npm run` alone stands for all scripts.
  if (name === '') return null;
  if (script === undefined) return `no script ${name}`;
  const behind = args.indexOf('--');
  const given = behind < 0 ? [] : args.slice(behind + 1);
  if (behind < 0 && args.some(isOption)) return `options of ${name} want -- before them`;
  if (name === 'headgate') return faultOfHeadgate(given);
  if (OWN_OPTIONS[name] !== undefined) return faultOfHeadgate([name, ...given]);
  const [, file] = /^node (\S+)$/.exec(script) ?? [];
  const source = file === undefined ? null : readFileSync(file, 'utf8');
  const unknown = given.filter(isOption).find((word) => {
    const option = nameOf(word).slice(2);
    return source !== null && !new RegExp(`['"\\s{-]${option}\\b['"]?`).test(source);
  });
  return unknown === undefined ? null : `${name} has no option ${unknown}`;
}

/** Why a command of `npx` runs nothing of this repository; null: it does. Paths that it names are there. */
function faultOfNpx(words: readonly string[]): string | null {
  const [name = '', ...args] = words;
  const [program = ''] = name.split('@');
  // `npx` alone, and a tarball that `npm pack` made.
  if (name === '' || name.endsWith('.tgz')) return null;
  if (program === 'headgate') return faultOfHeadgate(args);
  if (program !== 'npm' && MANIFEST.devDependencies[program] === undefined) {
    return `no package ${program}`;
  }
  const missing = args.find(
    (word) => /^(?:src|test|docs|design|bench)\/[^…*]+$/.test(word) && !existsSync(word),
  );
  return missing === undefined ? null : `no file ${missing}`;
}

/** The commands of a quote: each begins at its beginning, or where a shell begins one. */
function commandsIn(quote: string): { program: string; words: string[] }[] {
  return quote.split(/\s&&\s|\s\|\|?\s|;\s|\$\(|\)$/).flatMap((part) => {
    const text = part.trim().replace(/^(?:(?:[A-Z_]+=\S*|xargs|-\S+)\s+)+/, '');
    const [, program, rest = ''] = /^(headgate|npm|npx)(?: (.*))?$/.exec(text) ?? [];
    return program === undefined ? [] : [{ program, words: wordsOf(rest) }];
  });
}

function faultOf({ program, words }: { program: string; words: string[] }): string | null {
  if (program === 'headgate') return faultOfHeadgate(words);
  if (program === 'npx') return faultOfNpx(words);
  const [verb = '', ...rest] = words;
  if (verb === 'run') return faultOfScript(rest);
  if (verb === 'test') return faultOfScript([verb, ...rest]);
  return verb === '' || OF_NPM.has(verb) ? null : `no command of npm: ${verb}`;
}

function faultsOf(page: string): string[] {
  return quotesOf(page)
    .flatMap((quote) => commandsIn(quote).map((one) => [quote, faultOf(one)] as const))
    .flatMap(([quote, fault]) => (fault === null ? [] : [`${quote}: ${fault}`]));
}

it.each(QUOTING_PAGES)('every command that %s quotes is there', (page) => {
  expect(faultsOf(page)).toEqual([]);
});

it('docs/command-line.md lists every command', () => {
  const sections = readFileSync('docs/command-line.md', 'utf8').split('\n## ');
  const page = sections.find((section) => section.startsWith('Commands\n')) ?? '';
  const cells = [...page.matchAll(/^\| (`[a-z].*?) \| /gm)].map(([, cell = '']) => cell);
  const listed = cells.flatMap((cell) =>
    [...cell.matchAll(/`([a-z]+(?: [a-z]+)?)/g)].map(([, name = '']) => name),
  );
  const leaves = PROGRAM.commands.flatMap((command) =>
    command.commands.length === 0
      ? [command.name()]
      : command.commands.map((one) => `${command.name()} ${one.name()}`),
  );
  expect(listed.toSorted()).toEqual(leaves.toSorted());
});

it.each([
  ['headgate tatus', 'no command tatus'],
  ['headgate keys make team', 'no command make'],
  ['headgate limit house 6 --during 2h', 'limit has no option --during'],
  ['npx headgate serve --prot 1', 'serve has no option --prot'],
  ['npm run canary -- --url https://x.example --all', 'canary has no option --all'],
  ['npm run nothing', 'no script nothing'],
  ['npm run serve --port 1', 'want -- before'],
  ['npm run bench -- --slow', 'bench has no option --slow'],
  ['npx unknown-program', 'no package unknown-program'],
  ['KEY=$(headgate keys make x)', 'no command make'],
  ['headgate leases --json | xargs -rn1 headgate releas', 'no command releas'],
])('finds what is wrong with %s', (quote, fault) => {
  const faults = commandsIn(quote).map(faultOf);
  expect(faults.some((one) => one?.includes(fault))).toBe(true);
});

it('reads commands out of prose and blocks', () => {
  const all = QUOTING_PAGES.flatMap(quotesOf).flatMap(commandsIn);
  const count = (name: string): number => all.filter(({ program }) => program === name).length;
  expect([count('headgate') > 40, count('npm') > 60, count('npx') > 15]).toEqual([
    true,
    true,
    true,
  ]);
});
