// Goldens are the files in `test/goldens`. They freeze everything that is public or stored: names, types, statuses,
// tables. They contain no prose, so that rewording a description needs no update. Tests only check that each
// description exists.

type GoldenValue =
  | null
  | boolean
  | number
  | string
  | readonly GoldenValue[]
  | { readonly [key: string]: GoldenValue };

/** Keys of OpenAPI documents and JSON schemas whose values are prose. */
const PROSE_KEYS: ReadonlySet<string> = new Set(['description', 'summary', 'title']);

/** Keys of OpenAPI documents and JSON schemas whose values are maps by name. */
const NAME_KEYS: ReadonlySet<string> = new Set(['properties', '$defs', 'schemas', 'paths']);

/** Keys of JSON schemas whose values are arrays in any order. */
const SET_KEYS: ReadonlySet<string> = new Set(['required', 'enum']);

/** Minimum length of a repeated value that is replaced by a reference to its first occurrence. */
const REPEATED_MIN = 250;

/** Returns the path of a golden, relative to a folder such as `test/unit/goldens`. */
export function goldenFile(name: string): string {
  return `../../goldens/${name}.txt`;
}

/** Writes a JSON value with sorted keys. A value that fits on a line is written on one line, a long one only once. */
export function goldenText(value: unknown, lineMax = 120): string {
  return `${new Writer(lineMax).text(sorted(JSON.parse(JSON.stringify(value)) as GoldenValue), '#', '')}\n`;
}

class Writer {
  readonly #lineMax: number;
  /** Path of the first occurrence of each long value. */
  readonly #paths = new Map<string, string>();

  constructor(lineMax: number) {
    this.#lineMax = lineMax;
  }

  text(value: GoldenValue, path: string, indent: string): string {
    const short = JSON.stringify(value);
    if (value === null || typeof value !== 'object') return short;
    if (short.length >= REPEATED_MIN) {
      const first = this.#paths.get(short);
      if (first !== undefined) return `same as ${first}`;
      this.#paths.set(short, path);
    }
    if (indent.length + short.length <= this.#lineMax) return short;
    const inner = `${indent} `;
    const lines = Object.entries(value).map(([key, item]) => {
      const name = isArray(value) ? '' : `${JSON.stringify(key)}: `;
      return `${inner}${name}${this.text(item as GoldenValue, `${path}/${key}`, inner)}`;
    });
    const [open, close] = isArray(value) ? ['[', ']'] : ['{', '}'];
    return `${open}\n${lines.join(',\n')}\n${indent}${close}`;
  }
}

function sorted(value: GoldenValue): GoldenValue {
  if (value === null || typeof value !== 'object') return value;
  if (isArray(value)) return value.map(sorted);
  const keys = Object.keys(value).toSorted();
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key] ?? null)]));
}

function isArray(value: GoldenValue): value is readonly GoldenValue[] {
  return Array.isArray(value);
}

/**
 * Removes the prose from an OpenAPI document or a JSON schema. Throws if a description is empty. Fields named
 * `description` or `title` stay.
 */
export function withoutProse(value: unknown, path = '#', isNames = false): unknown {
  if (Array.isArray(value)) return value.map((item, at) => withoutProse(item, `${path}/${at}`));
  if (value === null || typeof value !== 'object') return value;
  const kept = Object.entries(value).flatMap(([key, inner]) => {
    const at = `${path}/${key}`;
    if (!isNames && PROSE_KEYS.has(key) && typeof inner === 'string') {
      if (inner.trim() === '') throw new Error(`${at} is empty`);
      return [];
    }
    const isSet = !isNames && SET_KEYS.has(key) && Array.isArray(inner);
    if (isSet) return [[key, inner.toSorted(byText)] as const];
    return [[key, withoutProse(inner, at, !isNames && NAME_KEYS.has(key))] as const];
  });
  return Object.fromEntries(kept);
}

function byText(one: unknown, other: unknown): number {
  return JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;
}

/** Lists the fields of a JSON schema, at any depth, that have no description. */
export function undescribedFields(schema: unknown, path = '#'): string[] {
  if (schema === null || typeof schema !== 'object') return [];
  const { properties } = schema as { readonly properties?: Readonly<Record<string, object>> };
  const here = Object.entries(properties ?? {}).flatMap(([name, field]) =>
    'description' in field || '$ref' in field ? [] : [`${path}/properties/${name}`],
  );
  const deeper = Object.entries(schema).flatMap(([key, inner]) =>
    undescribedFields(inner, `${path}/${key}`),
  );
  return [...here, ...deeper];
}
