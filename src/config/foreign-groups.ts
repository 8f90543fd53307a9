import type * as z from 'zod';
import type { ConfigInput } from '../contract/config/config.ts';
import { PROVIDERS } from '../providers/index.ts';
import type { NamingSystem } from '../providers/provider.ts';
import { explainIssues } from './explain-issues.ts';
import { formatPath, type FieldError } from './field-error.ts';

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
