import type * as z from 'zod';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { PROVIDERS } from '../../../src/providers/catalog.ts';
import type { NamingSystem } from '../../../src/providers/provider.ts';
import { explainIssues } from '../../../src/config/explain-issues.ts';
import { formatPath, type FieldError, below } from '../../../src/config/field-error.ts';
import { isKeyLike } from '../../../src/config/own-config.ts';

/** A converted foreign document: a configuration that still has to be checked, and notes about it. */
export type Converted =
  | {
      readonly ok: true;
      readonly config: ConfigInput;
      readonly notes: string[];
      /** Parts of the document that were not converted, with their paths in it. Absent if there are none. */
      readonly omitted?: readonly FieldError[];
      /** Translates a path in the configuration back to the document. If absent, most paths stay as they are. */
      readonly pathOf?: (path: string) => string;
    }
  | { readonly ok: false; readonly errors: FieldError[] };

export interface Origin {
  readonly path: readonly (string | number)[];
  readonly title: string;
  readonly group: Omit<NonNullable<ConfigInput['groups']>[number], 'name'>;
}

/** Names in other systems of providers that have another id here. */
const PROVIDER_ALIASES: ReadonlyMap<string, string> = new Map(
  PROVIDERS.flatMap(({ id, aliases = [] }) => aliases.map((alias) => [alias, id] as const)),
);

/** Returns the id of a provider by its name in other systems. A name of `system` takes precedence. */
export function providerIdOf(provider: string, system?: NamingSystem): string {
  const lower = provider.toLowerCase();
  const there =
    system && PROVIDERS.find(({ namedBy }) => namedBy?.[system]?.includes(lower) === true);
  return there?.id ?? PROVIDER_ALIASES.get(lower) ?? lower;
}

/** Gives every group a name derived from its title. Two equal names are an error. */
export function named(origins: readonly Origin[]): Converted {
  const taken = new Map<string, string>();
  const errors: FieldError[] = [];
  const notes: string[] = [];
  const groups: NonNullable<ConfigInput['groups']>[number][] = [];
  for (const { path, title, group } of origins) {
    const name = groupNameOf(title);
    const other = taken.get(name);
    if (name === '') {
      const message = 'has no letter or digit for the name of a group; rename it';
      errors.push({ path: formatPath(path), message });
    } else if (other !== undefined) {
      errors.push({
        path: formatPath(path),
        message: `would get the group name \`${name}\`, which \`${other}\` has; rename one of them`,
      });
    }
    if (name !== title) notes.push(`\`${title}\` became the group \`${name}\`.`);
    taken.set(name, title);
    groups.push({ ...group, name });
  }
  return errors.length > 0 ? { ok: false, errors } : { ok: true, config: { groups }, notes };
}

/** Returns the name of a group for a title. Empty if the title has no letter or digit. */
export function groupNameOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, 64)
    .replace(/-+$/, '');
}

/** Returns a free name: the wanted one, or one with a number at its end. */
export function freeName(
  wanted: string,
  isTaken: (name: string) => boolean,
  most = 64,
  joint = '-',
): string {
  let name = wanted;
  for (let number = 2; isTaken(name); number += 1) {
    const end = `${joint}${number}`;
    name = `${wanted.slice(0, most - end.length).replace(/[-_]+$/, '')}${end}`;
  }
  return name;
}

/** Returns the errors of a document by the schema of its shape. */
export function refused(error: z.ZodError, schema: z.core.$ZodType, document: unknown): Converted {
  return { ok: false, errors: explainIssues(error, schema, document) };
}

/** Converts text that is a number, also one as `1_000`. Any other value stays as it is. */
export function numberIn(value: unknown): unknown {
  const isNumber =
    typeof value === 'string' && /^\s*[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[-+]?\d+)?\s*$/i.test(value);
  return isNumber ? Number(value.replaceAll('_', '')) : value;
}

/** Converts those fields of an object that are numbers written as text. */
export function withNumbers(value: unknown, names: readonly string[]): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]: [string, unknown]) => [
      name,
      names.includes(name) ? numberIn(inner) : inner,
    ]),
  );
}

/**
 * Parses a value without its invalid parts, if that is possible. All errors are listed in `omitted`.
 *
 * @param at path of the value in the document
 * @param spareAt returns the part to remove for an error at a path of the value, or null if the value needs it
 * @returns null for a value that cannot be parsed
 */
export function readWithoutWrong<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  at: string,
  omitted: FieldError[],
  spareAt: (path: readonly PropertyKey[]) => readonly PropertyKey[] | null,
): z.output<Schema> | null {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const errors = explainIssues(parsed.error, schema, value);
  omitted.push(...errors.map(({ path, message }) => ({ path: below(at, path), message })));
  let rest = value;
  for (const issue of parsed.error.issues) {
    const spare = spareAt(issue.path);
    if (spare === null) return null;
    rest = without(rest, spare);
  }
  const left = schema.safeParse(rest);
  return left.success ? left.data : null;
}

function without(value: unknown, [name, ...inside]: readonly PropertyKey[]): unknown {
  if (typeof value !== 'object' || value === null || name === undefined) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]: [string, unknown]) => {
      if (key !== name) return [[key, inner]];
      return inside.length === 0 ? [] : [[key, without(inner, inside)]];
    }),
  );
}

/** Prefixes of variables in place of a key, as in `${NAME}`, `{{NAME}}` and `env.NAME`. */
const REFERENCE = /^(?:\$\{?|\{\{\s*)?(?:(?:process\.)?env[.:](?:\/\/)?|os\.environ\/)?/;

/** A placeholder that is itself the name of a variable, as in examples. */
const PLACEHOLDER = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|SECRET)$/;

/**
 * Names of secrets for the keys of a foreign document, and notes on how to set them. Keys themselves are never imported
 * or repeated. The same key gets the same name.
 */
export class ForeignSecrets {
  readonly #names = new Map<string, string>();
  readonly #notes = new Map<string, string>();

  /** One sentence for each secret that the operator has to set. */
  get notes(): string[] {
    return [...this.#notes.values()];
  }

  /** Returns the secret of an environment variable. A key in place of the variable's name is not repeated. */
  ofVariable(variable: string): string {
    if (isKeyLike(variable)) {
      return this.#named(
        `key ${variable}`,
        secretName('KEY'),
        'a provider, which the document has in place of the name of a variable',
      );
    }
    const name = secretName(variable);
    this.#note(
      name,
      `Set the secret ${name} to the value of the environment variable ${variable}.`,
    );
    return name;
  }

  /**
   * Returns the secret of a key in the document.
   *
   * @param owner owner of the key, as in `openai`. The name is derived from it, unless the key is the name of a
   *   variable.
   */
  ofKey(key: string, owner: string, at: string): string {
    const variable = variableIn(key);
    if (variable !== null) return this.ofVariable(variable);
    return this.#named(`key ${key}`, secretName(`${owner}_API_KEY`), at);
  }

  /** Returns the secret of something else that another system stores, such as a credential. */
  ofOther(what: string, owner: string, at: string): string {
    return this.#named(`other ${what}`, secretName(owner), at);
  }

  /**
   * Returns the secret of a key of an entry in a list.
   *
   * @param which index of the key among those of the entry
   */
  ofEntry(what: string, title: string, index: number, at: string, which = 0): string {
    const end = `_${index + 1}_KEY${which === 0 ? '' : `_${which + 1}`}`;
    return this.#named(`other ${what}`, `${secretName(title, 36)}${end}`, at);
  }

  #named(identity: string, wanted: string, at: string): string {
    const known = this.#names.get(identity);
    if (known !== undefined) return known;
    const name = freeName(wanted, (each) => this.#notes.has(each), 59, '_');
    this.#names.set(identity, name);
    this.#note(name, `Set the secret ${name} to the key of ${at}. Keys are not imported.`);
    return name;
  }

  #note(name: string, text: string): void {
    if (!this.#notes.has(name)) this.#notes.set(name, text);
  }
}

/** Returns the secret that a note asks for. null if it asks for none. */
export function secretOfNote(note: string): string | null {
  return /^Set the secret (UPSTREAM_\w+) to /.exec(note)?.[1] ?? null;
}

/** Returns the variable in place of a key. null if the text is a key itself. */
function variableIn(key: string): string | null {
  const name = key.replace(REFERENCE, '').replace(/\s*\}{1,2}$/, '');
  const isReference = name !== key && /^[A-Za-z_]\w*$/.test(name);
  return isReference || PLACEHOLDER.test(key) ? name : null;
}

/** Returns the name of a secret, which begins with `UPSTREAM_`. */
function secretName(text: string, most = 47): string {
  const word = text
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .replace(/^UPSTREAM_/, '');
  return `UPSTREAM_${word.slice(0, most) || 'KEY'}`;
}
