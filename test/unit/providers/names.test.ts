import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { DIALECTS } from '../../../src/contract/http.ts';
import { PROVIDERS } from '../../../src/providers/catalog.ts';

/**
 * No provider is known by name outside its own file: an algorithm that asks for one could not be found from
 * there. Comments and prices may name them. Six dialects are called like the provider that began them: such a
 * name is an API shape and may stand anywhere, but nothing may ask for a provider or an upstream by it.
 */

const ROOT = join(import.meta.dirname, '../../../src');

/** The dialects with their paths, the list of files, and the prices of tiers. */
const MAY_NAME = ['providers/catalog.ts', 'providers/catalog.ts', 'providers/prices/tiers.ts'];

/** Fields and codes of the wire that gateways pass on, so that they are read whoever sends them. */
const OF_THE_WIRE = [
  'x_groq',
  'openrouter_shared_capacity',
  'type.googleapis.com/google.rpc.ErrorInfo',
  'type.googleapis.com/google.rpc.RetryInfo',
];

/** A word of every day, which is a name only where it stands for itself. */
const COMMON_WORD = 'together';

const SHAPES: ReadonlySet<string> = new Set(DIALECTS);

const NAMES = PROVIDERS.flatMap(({ id, aliases = [] }) => [id, ...aliases])
  .filter((name) => !SHAPES.has(name))
  .map((name) => ({ name, pattern: new RegExp(name.replace(/[-.]/g, '[-_. ]?'), 'gi') }));

const ANY_NAME = new RegExp(NAMES.map(({ pattern }) => pattern.source).join('|'), 'i');

/** A name is one where words begin and end: `isGroq`, `GROQ_CODES`, `groq-2`, and not in the midst of a word. */
function isEdge(text: string, at: number): boolean {
  const [before = '', after = ''] = [text[at - 1], text[at]];
  if (!/[a-z\d]/i.test(before) || !/[a-z\d]/i.test(after)) return true;
  return /[A-Z]/.test(after) && !/[A-Z]/.test(before);
}

function nameIn(text: string): string | null {
  if (!ANY_NAME.test(text) || OF_THE_WIRE.includes(text)) return null;
  for (const { name, pattern } of NAMES) {
    if (name === COMMON_WORD && /\s/.test(text)) continue;
    for (const { index, 0: found } of text.matchAll(pattern)) {
      if (isEdge(text, index) && isEdge(text, index + found.length)) return name;
    }
  }
  return null;
}

function isText(node: ts.Node): node is ts.LiteralLikeNode {
  return ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node);
}

/** Reads what a name is compared with, looked up in, or handed to. */
function askedOf(node: ts.Node): string {
  const { parent } = node;
  if (ts.isBinaryExpression(parent)) {
    const isEquality = /^[!=]==?$/.test(parent.operatorToken.getText());
    return isEquality ? [parent.left, parent.right].map(textOf).join(' ') : '';
  }
  if (ts.isCallExpression(parent)) return textOf(parent.expression);
  if (ts.isCaseClause(parent)) return textOf(parent.parent.parent.expression);
  if (ts.isElementAccessExpression(parent)) return textOf(parent.expression);
  return '';
}

function textOf(node: ts.Node): string {
  return isText(node) ? '' : node.getText();
}

function findingOf(node: ts.Node): string | null {
  if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) return nameIn(node.text);
  if (ts.isRegularExpressionLiteral(node)) return nameIn(node.text);
  if (!isText(node) || isImport(node)) return null;
  const isAskedFor = /provider|upstreams|\bid\b|Id\b/i.test(
    SHAPES.has(node.text) ? askedOf(node) : '',
  );
  return isAskedFor ? node.text : nameIn(node.text);
}

function isImport({ parent }: ts.Node): boolean {
  return ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent);
}

function findingsIn(path: string, code: string): string[] {
  const file = ts.createSourceFile(path, code, ts.ScriptTarget.Latest, true);
  const findings: string[] = [];
  const visit = (node: ts.Node): void => {
    const name = findingOf(node);
    if (name !== null) {
      const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
      findings.push(`${path}:${line + 1} names ${name}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return findings;
}

const FILES = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !MAY_NAME.some((start) => path.startsWith(start)))
  .map((path) => ({ path, code: readFileSync(join(ROOT, path), 'utf8') }))
  .filter(({ code }) => !code.includes('satisfies Provider;'));

test('no file of src but its own names a provider', () => {
  expect(FILES.length).toBeGreaterThan(200);
  expect(FILES.flatMap(({ path, code }) => findingsIn(path, code))).toEqual([]);
}, 60_000);

test.each([
  "if (provider === 'zai') wait();",
  "const isChinaTime = id.startsWith('minimax');",
  'const GROQ_CODES = [498];',
  'function isOfDeepSeek() {}',
  "const url = 'https://api.x.ai/v1';",
  'const url = `https://${region}.z.ai/${path}`;',
  'const pattern = /^workers-ai/;',
  'table.moonshotCn();',
  "if (provider === 'openai') wait();",
  "switch (upstream.id) { case 'anthropic': break; }",
  "const gemini = upstreams.get('gemini');",
  "const own = providerNamed('bedrock');",
])('it would be found in: %s', (code) => {
  expect(findingsIn('a.ts', code)).toHaveLength(1);
});

test.each([
  "if (dialect === 'openai') wait();",
  "const shape = isDeployment ? 'azure' : 'openai';",
  "slot('embed', 'ollama', path);",
  "const text = 'They make no sense together.';",
  '// Z.ai and Groq do it otherwise.',
  'const maxAim = indexAi;',
])('it is not found in: %s', (code) => {
  expect(findingsIn('a.ts', code)).toEqual([]);
});
