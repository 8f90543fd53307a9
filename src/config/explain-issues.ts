import leven from 'leven';
import * as z from 'zod';
import { formatPath, quoteName, ticked, type FieldError } from './field-error.ts';

/** Explains errors of the schema to the author of a document, with the names that were probably meant. */

/** Maximum distance of a misspelling. A more distant name is another word. */
const DISTANCE_MAX = 3;

/** Maximum compared length. Longer names are not misspellings of a short one. */
const NAME_CHARACTERS_MAX = 64;

const NEAR_MAX = 3;

/** Returns the known name closest to `name`. null if none is close. */
export function nearestName(name: string, known: readonly string[]): string | null {
  return nearestNames(name, known)[0] ?? null;
}

/** Returns the known names close to `name`, the closest first. */
export function nearestNames(name: string, known: readonly string[]): string[] {
  const lower = name.toLowerCase().replaceAll('-', '_');
  const limit = Math.min(DISTANCE_MAX, Math.ceil(name.length / 3));
  const short = lower.slice(0, NAME_CHARACTERS_MAX);
  const near = known
    .map((candidate) => ({
      candidate,
      distance: leven(short, candidate.replaceAll('-', '_'), { maxDistance: limit + 1 }),
    }))
    .filter(({ distance }) => distance <= limit)
    .toSorted((a, b) => a.distance - b.distance)
    .map(({ candidate }) => candidate);
  const camel = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  // A part of a name: `concurrency` for `max_concurrency`.
  const isPart = (candidate: string) =>
    lower.length > 3 && candidate.replaceAll('-', '_').includes(lower);
  const others = [...known.filter((candidate) => candidate === camel), ...known.filter(isPart)];
  return [...new Set([...near, ...others])].slice(0, NEAR_MAX);
}

type Path = readonly PropertyKey[];

/** Fields whose text may be repeated in a message. Any other text may be a misplaced key. */
const QUOTABLE = new Set(['dialect', 'location', 'jurisdiction', 'partition_by', 'name', 'id']);

const EXPECTED: Record<string, string> = {
  int: 'a whole number',
  number: 'a number',
  string: 'text',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

const FORMATS: Record<string, string> = {
  url: 'a URL that begins with http:// or https://',
  datetime: 'an instant like 2026-11-20T10:00:00Z',
};

export function explainIssues(
  error: z.ZodError,
  schema: z.core.$ZodType,
  document: unknown,
): FieldError[] {
  return error.issues.flatMap((issue) => explain(issue, [], schema, document));
}

function explain(
  issue: z.core.$ZodIssue,
  base: Path,
  schema: z.core.$ZodType,
  document: unknown,
): FieldError[] {
  const path = [...base, ...issue.path];
  const value = valueAt(document, path);
  if (issue.code === 'unrecognized_keys') {
    const known = schemasAt(schema, path).flatMap((each) =>
      each instanceof z.ZodObject ? Object.keys(each.shape) : [],
    );
    return issue.keys.map((name) => unknownField([...path, name], name, known));
  }
  if (issue.code === 'invalid_union') {
    // A branch that accepted the kind of the value reports an error in a part of it.
    const branch = issue.errors.find((issues) => !issues.some(isWrongKind));
    if (branch !== undefined) {
      return branch.flatMap((inner) => explain(inner, path, schema, document));
    }
    const choices = issue.errors.map((issues) =>
      issues.filter(isWrongKind).map((inner) => expectation(inner, schemasAt(schema, path))),
    );
    return [wrong(path, choices.flat().join(' or '), value)];
  }
  if (issue.code === 'custom') return [{ path: formatPath(path), message: issue.message }];
  if (issue.code === 'invalid_key') return issue.issues.map((inner) => wrongName(path, inner));
  return [nearer(wrong(path, expectation(issue, schemasAt(schema, path)), value), issue, value)];
}

/** Adds the known value that is closest to a misspelled one. */
function nearer(found: FieldError, issue: z.core.$ZodIssue, value: unknown): FieldError {
  if (issue.code !== 'invalid_value' || typeof value !== 'string') return found;
  const known = issue.values.filter((each) => typeof each === 'string');
  const near = nearestName(value, known);
  return near === null
    ? found
    : { ...found, message: `${found.message}; did you mean ${JSON.stringify(near)}?` };
}

function isWrongKind(issue: z.core.$ZodIssue): boolean {
  return (
    issue.path.length === 0 && (issue.code === 'invalid_type' || issue.code === 'invalid_value')
  );
}

function wrong(path: Path, expected: string, value: unknown): FieldError {
  const message =
    value === undefined
      ? `is missing: expected ${expected}`
      : `expected ${expected}, got ${describe(value, path)}`;
  return { path: formatPath(path), message };
}

/** Explains a wrong name of an entry, which the author of the document chose. */
function wrongName(path: Path, issue: z.core.$ZodIssue): FieldError {
  const name = String(path.at(-1));
  return {
    path: formatPath(path),
    message: `${quoteName(name)} cannot be a name here: expected ${expectation(issue, [])}`,
  };
}

function unknownField(path: Path, name: string, known: readonly string[]): FieldError {
  const near = nearestName(name, known);
  const hint = near === null ? `known fields: ${ticked(known)}` : `did you mean \`${near}\`?`;
  return {
    path: formatPath(path),
    message: `unknown field ${quoteName(name)}${known.length === 0 ? '' : `; ${hint}`}`,
  };
}

/** Returns the text after the word "expected". `schemas` are all schemas at the path of the issue. */
function expectation(issue: z.core.$ZodIssue, schemas: readonly z.core.$ZodType[]): string {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the text of zod is enough for the rest
  switch (issue.code) {
    case 'invalid_type': {
      // A schema of whole numbers first reports that it expects any number.
      const isWhole = schemas.some((each) => each instanceof z.ZodNumberFormat);
      const expected = issue.expected === 'number' && isWhole ? 'int' : issue.expected;
      return EXPECTED[expected] ?? expected;
    }
    case 'invalid_value': {
      const values = issue.values.map((value) => JSON.stringify(value));
      return values.length === 1 ? values.join('') : `one of ${values.join(', ')}`;
    }
    case 'too_small':
      return `at least ${issue.minimum}${unitOf(issue.origin, Number(issue.minimum))}`;
    case 'too_big':
      return `at most ${issue.maximum}${unitOf(issue.origin, Number(issue.maximum))}`;
    case 'not_multiple_of':
      return `a multiple of ${issue.divisor}`;
    case 'invalid_format':
      if (issue.message.startsWith('expected ')) return issue.message.slice('expected '.length);
      return FORMATS[issue.format] ?? issue.message;
    default:
      return issue.message;
  }
}

function unitOf(origin: string, count: number): string {
  if (origin === 'string') return count === 1 ? ' character' : ' characters';
  if (origin === 'array') return count === 1 ? ' entry' : ' entries';
  return '';
}

function describe(value: unknown, path: Path): string {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') {
    return String(value);
  }
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'object') return 'an object';
  if (typeof value !== 'string') return typeof value;
  const isPlain = /^(-?\d{1,9}(\.\d{1,3})?|true|false|yes|no|null|auto)$/i.test(value);
  const field = path.findLast((part) => typeof part === 'string') ?? '';
  const isQuotable = path[0] !== 'keys' && QUOTABLE.has(String(field)) && value.length <= 40;
  return isPlain || isQuotable
    ? `the text ${JSON.stringify(value)}`
    : `a text of ${value.length}${unitOf('string', value.length)}`;
}

function valueAt(document: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, part) => {
    if (typeof value !== 'object' || value === null) return undefined;
    // Read by name, because a document may have as many fields as errors.
    return Object.getOwnPropertyDescriptor(value, part)?.value as unknown;
  }, document);
}

/** Returns the schemas at a path: several for a union, none for an unknown path. */
function schemasAt(schema: z.core.$ZodType, path: Path): z.core.$ZodType[] {
  const [part, ...rest] = path;
  if (schema instanceof z.ZodUnion) {
    return schema.options.flatMap((option: z.core.$ZodType) => schemasAt(option, path));
  }
  if (
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodOptional
  ) {
    return schemasAt(schema.unwrap(), path);
  }
  if (part === undefined) return [schema];
  if (schema instanceof z.ZodArray) return schemasAt(schema.element, rest);
  if (schema instanceof z.ZodRecord) return schemasAt(schema.valueType, rest);
  const field: z.core.$ZodType | undefined =
    schema instanceof z.ZodObject ? schema.shape[String(part)] : undefined;
  return field === undefined ? [] : schemasAt(field, rest);
}
