// Step 1: from text to a document. check-config.ts lists all steps.

import { isAlias, isScalar, LineCounter, parseDocument, visit, type Document } from 'yaml';

/** Maximum aliases of one document: a few lines of nested ones would unfold into gigabytes. */
const ALIASES_MAX = 100;

/** A document that is not JSON or YAML at all. Its message repeats nothing of the document. */
export class ConfigSyntaxError extends Error {
  override readonly name = 'ConfigSyntaxError';
}

/**
 * Reads a configuration's text. What says `yaml` in its content type is YAML 1.2, what says `json`
 * is JSON, and anything else is JSON when it begins like it. Throws `ConfigSyntaxError`.
 */
export function parseConfigText(text: string, contentType: string | null): unknown {
  const type = contentType?.toLowerCase() ?? '';
  const looksJson = /^\s*[{[]/.test(text);
  // Everything that is JSON is YAML too, so text of an unknown type loses nothing as YAML.
  const isJson = type.includes('json') || (!type.includes('yaml') && looksJson);
  return isJson ? parseJson(text) : parseYaml(text);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The engine's message quotes the document, which may hold what should not be repeated.
    const offset =
      error instanceof Error ? /at position (\d+)/.exec(error.message)?.[1] : undefined;
    const place = offset === undefined ? '' : ` at ${placeOf(text, Number(offset))}`;
    throw new ConfigSyntaxError(`The document is not valid JSON${place}.`);
  }
}

function parseYaml(text: string): unknown {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    schema: 'core',
    version: '1.2',
    customTags: [],
    resolveKnownTags: false,
    merge: false,
    // Checked below: the parser compares each key with all before it, minutes for a large document.
    uniqueKeys: false,
    stringKeys: true,
    prettyErrors: false,
    logLevel: 'error',
    lineCounter: lines,
  });
  const refuse = (offset: number, why: string): never => {
    const { line, col } = lines.linePos(offset);
    throw new ConfigSyntaxError(
      `The document is not valid YAML at line ${line}, column ${col}: ${why}.`,
    );
  };
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem !== undefined) {
    refuse(problem.pos[0], problem.code.toLowerCase().replaceAll('_', ' '));
  }
  const repeatedAt = repeatedKeyAt(document);
  if (repeatedAt !== null) refuse(repeatedAt, 'duplicate key');
  let aliases = 0;
  visit(document, (_key, node) => {
    if (isAlias(node)) aliases += 1;
  });
  if (aliases > ALIASES_MAX) {
    throw new ConfigSyntaxError(`The document uses more than ${ALIASES_MAX} YAML aliases.`);
  }
  try {
    return document.toJS({ maxAliasCount: ALIASES_MAX });
  } catch {
    throw new ConfigSyntaxError('The YAML aliases of the document cannot be resolved.');
  }
}

/** Finds where a key stands that its map has already; null: nowhere. */
function repeatedKeyAt(document: Document): number | null {
  let repeatedAt: number | null = null;
  visit(document, {
    Map(_key, { items }) {
      const names = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (names.has(key.value)) {
          repeatedAt = key.range?.[0] ?? 0;
          return visit.BREAK;
        }
        names.add(key.value);
      }
      return undefined;
    },
  });
  return repeatedAt;
}

function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split('\n');
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}
