import { stringify } from 'yaml';
import { configSchema, type Config } from '../contract/config/config.ts';
import { withImpliedMatch } from '../routing/implied-groups.ts';
import { PROVIDERS } from '../providers/catalog.ts';
import { contradictedNames } from './check/groups.ts';
import { connectionNotes } from './check/upstreams.ts';
import { explainIssues } from './explain-issues.ts';
import { quoteName, type FieldError } from './field-error.ts';

/** A document as a whole configuration, or all of its errors. */
type OwnDocument =
  | {
      readonly ok: true;
      readonly config: Config;
      /** Facts about the document that its author may not expect, in full sentences. */
      readonly notes: string[];
    }
  | { readonly ok: false; readonly errors: FieldError[] };

/**
 * Top-level fields of the formats that `packages/import` converts, by system. A document of a system has at least one
 * of its fields. None is a field of Headgate's format.
 */
export const FOREIGN_FIELDS = {
  clawith: ['concurrency_groups'],
  hermes: [
    'custom_providers',
    'fallback_providers',
    'fallback_model',
    'credential_pool',
    'credential_pool_strategies',
    'model',
  ],
  litellm: ['model_list'],
  picoclaw: ['model_list', 'models', 'rate_limit', 'model'],
  portkey: ['strategy', 'targets', 'provider', 'virtual_key', 'override_params'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** Returns the field that shows that a document is the configuration of another system. null if it is not. */
export function foreignFieldOf(document: unknown): string | null {
  const fields = Object.keys(Object(document));
  if (fields.some((name) => Object.hasOwn(configSchema.shape, name))) return null;
  const foreign: readonly string[] = Object.values(FOREIGN_FIELDS).flat();
  return fields.find((name) => foreign.includes(name)) ?? null;
}

/**
 * Checks a document in Headgate's format by its fields alone. `checkConfig` checks whether its groups and upstreams are
 * consistent.
 */
export function readOwnDocument(written: unknown): OwnDocument {
  const document = withoutExtensions(written);
  const parsed = configSchema.safeParse(document);
  if (!parsed.success) {
    return { ok: false, errors: explainIssues(parsed.error, configSchema, document) };
  }
  const errors = [...keyLikeFields(parsed.data), ...contradictedNames(parsed.data)];
  if (errors.length > 0) return { ok: false, errors };
  const config = { ...parsed.data, groups: parsed.data.groups.map(withImpliedMatch) };
  return { ok: true, config, notes: connectionNotes(document) };
}

/**
 * Removes top-level fields that configure nothing: `$schema`, which editors read, and keys that begin with `x-`, which
 * hold values for YAML aliases.
 */
export function withoutExtensions(document: unknown): unknown {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return document;
  const isExtension = (key: string, value: unknown): boolean =>
    key.startsWith('x-') || (key === '$schema' && typeof value === 'string');
  const fields = Object.entries(document).filter(([key, value]) => !isExtension(key, value));
  return Object.fromEntries(fields);
}

/** Exports a whole configuration, including every default. */
export function exportConfig(config: Config, format: 'json' | 'yaml'): string {
  return format === 'json'
    ? `${JSON.stringify(config, null, 2)}\n`
    : stringify(config, { aliasDuplicateObjects: false, lineWidth: 0 });
}

function keyLikeFields(config: Config): FieldError[] {
  const message =
    'looks like a key itself; expected an id or a fingerprint (POST /admin/api/fingerprint)';
  const inGroups = config.groups.flatMap((group, at) =>
    group.match.keys.flatMap((key, index) =>
      isKeyLike(key) ? [{ path: `groups[${at}].match.keys[${index}]`, message }] : [],
    ),
  );
  const inKeys = config.keys.flatMap((key, at) =>
    isKeyLike(key.id) ? [{ path: `keys[${at}].id`, message }] : [],
  );
  return [...inGroups, ...inKeys];
}

/**
 * Prefixes of keys of providers and of Headgate. Configurations are shown and logged, so they must not contain keys.
 */
const KEY_PREFIXES: readonly string[] = [
  'sk-',
  'sk_',
  'hg_',
  'bearer ',
  ...PROVIDERS.flatMap(({ keyPrefixes = [] }) => keyPrefixes),
];

/** Whether a text begins like a key and must not be repeated. */
export function isKeyLike(text: string): boolean {
  const lower = text.toLowerCase();
  return KEY_PREFIXES.some((prefix) => lower.startsWith(prefix));
}

/** Quotes a name, unless it may be a misplaced key. */
export function quoteNoKey(name: string): string {
  return isKeyLike(name) ? `<${name.length} characters>` : quoteName(name);
}
