// Parses JSON and YAML text, with positions of errors. Keys that occur twice are errors, and YAML merges are resolved.
import {
  isAlias,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  isMap,
  isNode,
  type Document,
  type Alias,
  type Node,
  type Pair,
  type YAMLMap,
} from 'yaml';
import { mediaType } from '../runtime/header-value.ts';
import { formatPath } from './field-error.ts';

/** Maximum aliases of one document, because a few lines of nested aliases could expand to gigabytes. */
const ALIASES_MAX = 100;

/** Maximum values of a document with its aliases resolved, and maximum nesting depth. */
const VALUES_MAX = 1_000_000;
const DEPTH_MAX = 100;

const NO_MAP = 'the key << merges maps. Set it to an alias of a map, or to a list of such aliases';

const NO_ANCHOR =
  'no anchor before this alias has its name. Set one with & where the value is first used';

/** A document that is neither JSON nor YAML. Its message repeats nothing of the document. */
export class ConfigSyntaxError extends Error {
  override readonly name: string = 'ConfigSyntaxError';
}

/** A document that cannot be exported: it contains itself, is nested too deeply, or its aliases repeat too much. */
export class ConfigShapeError extends ConfigSyntaxError {
  override readonly name = 'ConfigShapeError';
}

/**
 * Parses the text of a configuration. A content type with `yaml` means YAML 1.2, and one with `json` means JSON. Any
 * other text is JSON if it begins like JSON and is valid JSON, and YAML otherwise.
 *
 * @throws ConfigSyntaxError
 */
export function parseConfigText(text: string, contentType: string | null): unknown {
  const type = mediaType(contentType);
  let read: ReadText;
  try {
    if (type.includes('json')) read = { value: parseJson(text), isJson: true };
    else if (type.includes('yaml') || !/^\s*[{[]/.test(text)) {
      read = { value: parseYaml(text), isJson: false };
    } else read = parseEither(text);
  } catch (error) {
    // The parsers are recursive, and a deep document overflows the stack.
    if (error instanceof RangeError) throw tooDeep();
    throw error;
  }
  checkShape(read.value);
  // The search requires a valid document that is not too deep.
  if (read.isJson) refuseRepeatedKey(text);
  return read.value;
}

interface ReadText {
  readonly value: unknown;
  readonly isJson: boolean;
}

const JSON_COMMENT = /[{[,]\s*\/[/*]/;

/** Parses text that begins like JSON. YAML may begin the same way, without quotes around its keys. */
function parseEither(text: string): ReadText {
  try {
    return { value: parseJson(text), isJson: true };
  } catch (error) {
    // In YAML, a comment of JSON would be the beginning of the next key.
    if (!(error instanceof ConfigSyntaxError) || JSON_COMMENT.test(text)) throw error;
    const isQuoted = !/^\s*(?:\[\s*)*\{\s*[^\s"}]/.test(text);
    return { value: parseYaml(text, isQuoted ? error : undefined), isJson: false };
  }
}

/** Rejects JSON with a duplicate key, for which `JSON.parse` keeps the last value only. */
function refuseRepeatedKey(text: string): void {
  const repeated = repeatedJsonKey(text);
  if (repeated === null) return;
  const place = placeOf(text, repeated.offset);
  throw new ConfigSyntaxError(
    `The document is not valid JSON at ${place}: ${duplicateKey(repeated.path)}.`,
  );
}

/** Describes a duplicate key by its path. Long names are not repeated, because they may be credentials. */
function duplicateKey(path: readonly PropertyKey[]): string {
  return `duplicate key. Remove one of the two values of ${formatPath(path)}`;
}

function tooDeep(): ConfigShapeError {
  const message = `The document is nested more than ${DEPTH_MAX} levels deep. Remove the inner levels.`;
  return new ConfigShapeError(message);
}

function tooManyValues(): ConfigShapeError {
  const message = `The document has more than ${VALUES_MAX} values once its aliases are resolved. Use fewer aliases, or shorter ones.`;
  return new ConfigShapeError(message);
}

/** Rejects documents that could not be exported again. */
function checkShape(document: unknown): void {
  const left: [value: unknown, depth: number][] = [[document, 0]];
  let values = 0;
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [value, depth] = next;
    values += 1;
    if (values > VALUES_MAX) {
      throw tooManyValues();
    }
    if (typeof value !== 'object' || value === null) continue;
    if (depth === DEPTH_MAX) throw tooDeep();
    for (const inner of Object.values(value)) left.push([inner, depth + 1]);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The message of the engine quotes the document, which may contain a credential.
    const offset =
      error instanceof Error ? /at position (\d+)/.exec(error.message)?.[1] : undefined;
    const place = offset === undefined ? '' : ` at ${placeOf(text, Number(offset))}`;
    throw new ConfigSyntaxError(`The document is not valid JSON${place}.`);
  }
}

/**
 * @param instead error to throw for text that is not YAML. By default, the error describes the position in the YAML.
 */
function parseYaml(text: string, instead?: ConfigSyntaxError): unknown {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    schema: 'core',
    version: '1.2',
    customTags: [],
    resolveKnownTags: false,
    merge: true,
    // Checked below, because the parser compares each key with all earlier ones: minutes for a large document.
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
  if (problem?.code === 'RESOURCE_EXHAUSTION') throw tooDeep();
  if (problem !== undefined) {
    if (instead !== undefined) throw instead;
    refuse(problem.pos[0], problem.code.toLowerCase().replaceAll('_', ' '));
  }
  const repeated = repeatedKey(document);
  if (repeated !== null) refuse(repeated.offset, duplicateKey(repeated.path));
  const targets = aliasTargets(document);
  let aliases = 0;
  visit(document, (_key, node, path) => {
    if (!isAlias(node)) return;
    aliases += 1;
    if (aliases > ALIASES_MAX) {
      throw new ConfigShapeError(
        `The document uses more than ${ALIASES_MAX} YAML aliases. Write some of the repeated values out.`,
      );
    }
    const anchored = targets.get(node);
    if (anchored === undefined) refuse(node.range?.[0] ?? 0, NO_ANCHOR);
    if (anchored === undefined || !path.includes(anchored)) return;
    const { line, col } = lines.linePos(node.range?.[0] ?? 0);
    const message = `The document contains itself: the YAML alias at line ${line}, column ${col} is inside the value that it repeats. Remove it.`;
    throw new ConfigShapeError(message);
  });
  if (text.includes('<<')) {
    const wrongMerge = mergeProblem(document, targets);
    if (wrongMerge !== null) refuse(wrongMerge, NO_MAP);
    if (mergedValues(document, targets) > VALUES_MAX) throw tooManyValues();
  }
  try {
    return document.toJS({ maxAliasCount: ALIASES_MAX });
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw new ConfigShapeError(
      'The YAML aliases of the document cannot be resolved. Write the repeated values out.',
    );
  }
}

/** Returns a key that its map has twice. null if there is none. */
function repeatedKey(document: Document): { offset: number; path: PropertyKey[] } | null {
  let repeated: { offset: number; path: PropertyKey[] } | null = null;
  visit(document, {
    Map(_key, map, ancestors) {
      const names = new Set<unknown>();
      for (const { key } of map.items) {
        if (!isScalar(key)) continue;
        if (names.has(key.value)) {
          const path = [...pathOf([...ancestors, map]), String(key.value)];
          repeated = { offset: key.range?.[0] ?? 0, path };
          return visit.BREAK;
        }
        names.add(key.value);
      }
      return undefined;
    },
  });
  return repeated;
}

/** Returns the path of the last of some nodes, each of which contains the next. */
function pathOf(nodes: readonly unknown[]): PropertyKey[] {
  return nodes.flatMap((node, at): PropertyKey[] => {
    if (isPair(node)) return isScalar(node.key) ? [String(node.key.value)] : [];
    return isSeq(node) ? [node.items.indexOf(nodes[at + 1])] : [];
  });
}

function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split('\n');
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}

/** Whether a pair merges other maps into its own. A quoted `"<<"` is a key like any other. */
function isMerge({ key }: Pair): boolean {
  return isScalar(key) && key.value === '<<' && key.type === 'PLAIN';
}

export type AliasTargets = ReadonlyMap<Alias, Node>;

/** Maps each alias to its node, in one pass. The library searches the whole document for each alias. */
export function aliasTargets(document: Document): AliasTargets {
  const anchored = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(document, (_key, node) => {
    if (isAlias(node)) {
      const repeated = anchored.get(node.source);
      if (repeated !== undefined) targets.set(node, repeated);
    } else if (isNode(node) && node.anchor !== undefined && node.anchor !== '') {
      anchored.set(node.anchor, node);
    }
  });
  return targets;
}

/** Returns the maps that a pair merges. null if one of them is not a map. */
function sourcesOf({ value }: Pair, targets: AliasTargets): readonly YAMLMap[] | null {
  const resolved = (node: unknown): unknown => (isAlias(node) ? targets.get(node) : node);
  const whole = resolved(value);
  const sources = isSeq(whole) ? whole.items.map(resolved) : [whole];
  return sources.every((source) => isMap(source)) ? sources : null;
}

/** Returns the position of a merge of something that is not a map. null if there is none. */
export function mergeProblem(document: Document, targets: AliasTargets): number | null {
  let offset: number | null = null;
  visit(document, {
    Pair(_key, pair) {
      if (!isMerge(pair) || sourcesOf(pair, targets) !== null) return undefined;
      const wrong = isNode(pair.value) ? pair.value : pair.key;
      offset = (wrong as Node).range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  return offset;
}

/**
 * Counts the values that merges copy. An alias repeats a value without a copy, but each merge copies the merged maps
 * with all of their values.
 */
export function mergedValues(document: Document, targets: AliasTargets): number {
  const sizes = new WeakMap<object, number>();
  const sizeOf = (node: unknown): number => {
    if (isPair(node)) {
      if (!isMerge(node)) return 1 + sizeOf(node.value);
      return (sourcesOf(node, targets) ?? []).reduce((sum, source) => sum + sizeOf(source), 0);
    }
    if (!isMap(node) && !isSeq(node)) return 1;
    const known = sizes.get(node);
    if (known !== undefined) return known;
    const size = node.items.reduce<number>((sum, item) => sum + sizeOf(item), 1);
    sizes.set(node, size);
    return size;
  };
  let values = 0;
  visit(document, {
    Pair(_key, pair) {
      if (isMerge(pair)) values += sizeOf(pair);
    },
  });
  return values;
}

interface RepeatedKey {
  /** Position of its second occurrence in the text, in UTF-16 code units. */
  readonly offset: number;
  readonly path: readonly PropertyKey[];
}

interface OpenContainer {
  /** Keys of an object so far. null for a list. */
  readonly keys: Set<string> | null;
  /** The entry at the position. */
  at: PropertyKey;
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]/g;

/**
 * Returns the first duplicate key in a text that is valid JSON. `JSON.parse` keeps the last value of such a key and
 * reports nothing. The time grows with the length of the text.
 */
export function repeatedJsonKey(text: string): RepeatedKey | null {
  const open: OpenContainer[] = [];
  let isKeyNext = false;
  for (const { 0: token, index: offset } of text.matchAll(TOKEN)) {
    const inside = open.at(-1);
    if (token === '{' || token === '[') {
      const isObject = token === '{';
      open.push({ keys: isObject ? new Set() : null, at: 0 });
      isKeyNext = isObject;
    } else if (token === '}' || token === ']') {
      open.pop();
      isKeyNext = false;
    } else if (token === ',' && inside !== undefined) {
      isKeyNext = inside.keys !== null;
      if (typeof inside.at === 'number') inside.at += 1;
    } else if (isKeyNext && inside?.keys) {
      // A key may be written with escapes in one place and without them in another.
      const key = token.includes('\\') ? String(JSON.parse(token)) : token.slice(1, -1);
      inside.at = key;
      if (inside.keys.has(key)) return { offset, path: open.map(({ at }) => at) };
      inside.keys.add(key);
      isKeyNext = false;
    }
  }
  return null;
}
