// Step 2: from the shape of another system to ours. check-config.ts lists all steps.

import type * as z from 'zod';
import type { ConfigInput } from '../contract/config/config.ts';
import {
  concurrencyGroupsSchema,
  rateLimitSchema,
  rateLimitListSchema,
  rateLimitModelsSchema,
} from '../contract/config/foreign-schemas.ts';
import { PROVIDERS } from '../providers/index.ts';
import { explainIssues } from './explain-issues.ts';
import { formatPath, type FieldError } from './field-error.ts';

/** A foreign document converted: a configuration still to be checked, and what was made of it. */
export type Converted =
  | {
      readonly ok: true;
      readonly config: ConfigInput;
      readonly notes: string[];
      /** Translates a path in the configuration back into the document. Absent: most stay as they are. */
      readonly pathOf?: (path: string) => string;
    }
  | { readonly ok: false; readonly errors: FieldError[] };

type GroupInput = NonNullable<ConfigInput['groups']>[number];

/** A group, and where in the document it came from. */
interface Origin {
  readonly path: readonly (string | number)[];
  readonly title: string;
  readonly group: Omit<GroupInput, 'name'>;
}

/** Names that other systems give to providers that are built in here under another id. */
const PROVIDER_ALIASES: ReadonlyMap<string, string> = new Map(
  PROVIDERS.flatMap(({ id, aliases = [] }) => aliases.map((alias) => [alias, id] as const)),
);

const FOREIGN_KEYS = ['concurrency_groups', 'models', 'model', 'rate_limit', 'model_list'];

/** Lists the foreign fields at the top of a document; `['list']` for a document that is a list. */
export function foreignKeys(document: unknown): string[] {
  if (Array.isArray(document)) return ['list'];
  if (typeof document !== 'object' || document === null) return [];
  return Object.keys(document).filter((key) => FOREIGN_KEYS.includes(key));
}

/** Turns a document of one of the foreign shapes but LiteLLM's into a configuration. */
export function convertForeign(document: unknown): Converted {
  if (typeof document === 'object' && document !== null && 'concurrency_groups' in document) {
    return convertConcurrencyGroups(document);
  }
  if (Array.isArray(document)) {
    const parsed = rateLimitListSchema.safeParse(document);
    if (!parsed.success) return refused(parsed.error, rateLimitListSchema, document);
    return named(parsed.data.map((entry, index) => rateLimitOrigin(entry, [index])));
  }
  if (typeof document === 'object' && document !== null && 'models' in document) {
    const parsed = rateLimitModelsSchema.safeParse(document);
    if (!parsed.success) return refused(parsed.error, rateLimitModelsSchema, document);
    return named(
      parsed.data.models.map((entry, index) => rateLimitOrigin(entry, ['models', index])),
    );
  }
  const parsed = rateLimitSchema.safeParse(document);
  if (!parsed.success) return refused(parsed.error, rateLimitSchema, document);
  return named([rateLimitOrigin(parsed.data, [])]);
}

function convertConcurrencyGroups(document: object): Converted {
  const parsed = concurrencyGroupsSchema.safeParse(document);
  if (!parsed.success) return refused(parsed.error, concurrencyGroupsSchema, document);
  const origins = parsed.data.concurrency_groups.map((entry, index) => ({
    path: ['concurrency_groups', index, 'name'],
    title: entry.name,
    group: {
      match: { models: entry.models, upstreams: entry.providers.map(providerIdOf) },
      limits: { max_concurrency: entry.max_concurrency },
    },
  }));
  const converted = named(origins);
  if (!converted.ok) return converted;
  const renamed = new Set(parsed.data.concurrency_groups.flatMap((entry) => entry.providers));
  const notes = [...renamed]
    .filter((provider) => providerIdOf(provider) !== provider)
    .map((provider) => `Provider "${provider}" is the upstream "${providerIdOf(provider)}".`);
  return { ...converted, notes: [...converted.notes, ...notes] };
}

/** Finds the id of a provider by a name that other systems give it. */
export function providerIdOf(provider: string): string {
  const lower = provider.toLowerCase();
  return PROVIDER_ALIASES.get(lower) ?? lower;
}

function rateLimitOrigin(
  entry: z.output<typeof rateLimitSchema>,
  at: readonly (string | number)[],
): Origin {
  return {
    path: [...at, 'model'],
    title: entry.model,
    group: { match: { models: [entry.model] }, limits: entry.rate_limit },
  };
}

/** Gives every group a name made of its title; two that get the same one are an error. */
function named(origins: readonly Origin[]): Converted {
  const taken = new Map<string, string>();
  const errors: FieldError[] = [];
  const notes: string[] = [];
  const groups: GroupInput[] = [];
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

function refused(error: z.ZodError, schema: z.core.$ZodType, document: unknown): Converted {
  return { ok: false, errors: explainIssues(error, schema, document) };
}
