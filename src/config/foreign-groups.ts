// Step 2, what the shapes of other systems have in common. check-config.ts lists all steps.

import type * as z from 'zod';
import type { ConfigInput } from '../contract/config/config.ts';
import { PROVIDERS } from '../providers/index.ts';
import type { NamingSystem } from '../providers/provider.ts';
import { explainIssues } from './explain-issues.ts';
import { formatPath, type FieldError } from './field-error.ts';

/** A foreign document converted: a configuration still to be checked, and what was made of it. */
export type Converted =
  | {
      readonly ok: true;
      readonly config: ConfigInput;
      readonly notes: string[];
      /** Parts of the document that were not taken over, with their paths in it. Absent: everything was. */
      readonly omitted?: readonly FieldError[];
      /** Translates a path in the configuration back into the document. Absent: most stay as they are. */
      readonly pathOf?: (path: string) => string;
    }
  | { readonly ok: false; readonly errors: FieldError[] };

/** A group, and where in the document it came from. */
export interface Origin {
  readonly path: readonly (string | number)[];
  readonly title: string;
  readonly group: Omit<NonNullable<ConfigInput['groups']>[number], 'name'>;
}

/** Names that other systems give to providers that are built in here under another id. */
const PROVIDER_ALIASES: ReadonlyMap<string, string> = new Map(
  PROVIDERS.flatMap(({ id, aliases = [] }) => aliases.map((alias) => [alias, id] as const)),
);

/** Finds the id of a provider by a name that other systems give it, or that one of them gives to another host. */
export function providerIdOf(provider: string, system?: NamingSystem): string {
  const lower = provider.toLowerCase();
  const there =
    system && PROVIDERS.find(({ namedBy }) => namedBy?.[system]?.includes(lower) === true);
  return there?.id ?? PROVIDER_ALIASES.get(lower) ?? lower;
}

/** Gives every group a name made of its title; two that get the same one are an error. */
export function named(origins: readonly Origin[]): Converted {
  const taken = new Map<string, string>();
  const errors: FieldError[] = [];
  const notes: string[] = [];
  const groups: NonNullable<ConfigInput['groups']>[number][] = [];
  for (const { path, title, group } of origins) {
    const name = groupNameOf(title);
    const other = taken.get(name);
    if (name === '') {
      errors.push({ path: formatPath(path), message: 'no group name can be made of this' });
    } else if (other !== undefined) {
      errors.push({
        path: formatPath(path),
        message: `would become the group "${name}", as "${other}" does`,
      });
    }
    if (name !== title) notes.push(`"${title}" became the group "${name}".`);
    taken.set(name, title);
    groups.push({ ...group, name });
  }
  return errors.length > 0 ? { ok: false, errors } : { ok: true, config: { groups }, notes };
}

/** Makes the name of a group out of a title. */
export function groupNameOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, 64)
    .replace(/-+$/, '');
}

/** Makes a name that is not taken: the wanted one, or that with a number at its end. */
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

/** Words the mistakes of a document by the schema of its shape. */
export function refused(error: z.ZodError, schema: z.core.$ZodType, document: unknown): Converted {
  return { ok: false, errors: explainIssues(error, schema, document) };
}
