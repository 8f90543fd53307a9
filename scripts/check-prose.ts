import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { TextlintKernel, type TextlintRuleModule } from '@textlint/kernel';
import ts from 'typescript';

/**
 * Checks the prose of documents, comments and string literals with textlint. Phrases in `prose.yml` and lines of prose
 * beyond 120 columns are errors. Sentences of more than 35 words are warnings.
 */
const COLUMNS = 120;
const WORDS = 35;
const PATHS = [
  'src',
  'dashboard',
  'packages',
  'scripts',
  'docs',
  'design',
  'ops',
  '*.md',
  '*.toml',
];
const PHRASES = fileURLToPath(new URL('prose.yml', import.meta.url));

const require = createRequire(import.meta.url);
const { default: markdown } = require('@textlint/textlint-plugin-markdown');
const { default: phrases } = require('textlint-rule-prh');

const sentences = new Intl.Segmenter('en', { granularity: 'sentence' });
const longSentences: TextlintRuleModule = ({ Syntax, report, RuleError, getSource, locator }) => ({
  [Syntax.Paragraph](node) {
    for (const { segment, index } of sentences.segment(getSource(node).replaceAll('\n', ' '))) {
      const words = segment.split(/\s+/).filter((word) => /\w/.test(word)).length;
      const error = new RuleError(`${words} words in a sentence`, { padding: locator.at(index) });
      if (words > WORDS) report(node, error);
    }
  },
});

/** Returns comments and texts of a source, each line with its number. A literal without a space is a name. */
function proseOf(file: string, source: string): [text: string, line: number][] {
  const root = ts.createSourceFile(file, source, ts.ScriptTarget.Latest);
  const pieces = new Map<number, string>();
  const visit = (node: ts.Node): void => {
    const leading = ts.getLeadingCommentRanges(source, node.pos) ?? [];
    const trailing = ts.getTrailingCommentRanges(source, node.end) ?? [];
    for (const { pos, end } of [...leading, ...trailing]) pieces.set(pos, source.slice(pos, end));
    const isText =
      ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node) || ts.isJsxText(node);
    if (isText && /\w \w/.test(node.text)) pieces.set(node.getStart(root), node.getText(root));
    ts.forEachChild(node, visit);
  };
  visit(root);
  visit(root.endOfFileToken);
  return [...pieces]
    .toSorted(([a], [b]) => a - b)
    .flatMap(([pos, piece]) => {
      const first = root.getLineAndCharacterOfPosition(pos).line + 1;
      const texts = piece
        .split('\n')
        .map((line) => line.replace(/^\s*(?:\/\*\*?|\*\/?|\/\/)?\s*/, ''));
      return [...texts, ''].map((text, at): [string, number] => [text, first + at]);
    });
}

/** Finds lines of documents and comments that are too wide. Code, tables and lines with one long word are not prose. */
function wideLines(file: string, source: string): number[] {
  let isFenced = false;
  return source.split('\n').flatMap((line, at) => {
    if (/^\s*```/.test(line)) isFenced = !isFenced;
    const isText = file.endsWith('.md') && !isFenced && line[0] !== '|';
    const isProse = isText || /^\s*(?:\/\/|\/?\*|# )/.test(line);
    return isProse && line.length > COLUMNS && /\S \S+ \S/.test(line) ? [at + 1] : [];
  });
}

const kernel = new TextlintKernel();
async function check(file: string): Promise<{ errors: string[]; warnings: string[] }> {
  const source = readFileSync(file, 'utf8');
  const isCode = /\.tsx?$/.test(file);
  const lines = isCode ? proseOf(file, source) : null;
  const { messages } = await kernel.lintText(lines?.map(([text]) => text).join('\n') ?? source, {
    ext: '.md',
    plugins: [{ pluginId: 'markdown', plugin: markdown }],
    rules: [
      { ruleId: 'phrases', rule: phrases, options: { rulePaths: [PHRASES] } },
      { ruleId: 'sentences', rule: longSentences },
    ],
  });
  const found = (rule: string): string[] =>
    messages.flatMap(({ ruleId, line, message }) =>
      ruleId === rule ? [`${file}:${lines?.[line - 1]?.[1] ?? line}: ${message}`] : [],
    );
  const wide = wideLines(file, source).map((at) => `${file}:${at}: over ${COLUMNS} columns`);
  return { errors: [...found('phrases'), ...wide], warnings: found('sentences') };
}

const tracked = execFileSync('git', ['ls-files', ...PATHS], { encoding: 'utf8' }).split('\n');
const files = tracked.filter((file) => /\.(?:tsx?|md|yaml|toml)$/.test(file));
const results = await Promise.all(files.map(check));
const warnings = results.flatMap((result) => result.warnings);
const errors = results.flatMap((result) => result.errors);
for (const line of [...warnings, ...errors]) console.error(line);
console.log(`Files: ${files.length}, errors: ${errors.length}, warnings: ${warnings.length}`);
if (files.length === 0 || errors.length > 0) process.exit(1);
