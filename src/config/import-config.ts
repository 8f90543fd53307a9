// Step 3: from a document to a configuration, field by field. check-config.ts lists all steps.

import { stringify } from 'yaml';
import { configSchema, type Config } from '../contract/config/config.ts';
import { PROVIDERS } from '../providers/index.ts';
import { explainIssues } from './explain-issues.ts';
import { withoutOldDefaults } from './gone-fields.ts';
import type { FieldError } from './field-error.ts';
import { connectionNotes } from './check/sockets.ts';
import { laneNotes } from './check/lanes.ts';
import { sayingMore } from './check/configured-auto-groups.ts';
import { withImpliedWay } from '../routing/configured-auto-groups.ts';
import { convertForeign, foreignKeys } from './convert-foreign.ts';

export { ConfigShapeError, ConfigSyntaxError, parseConfigText } from './parse-text.ts';

/** A document as a whole configuration, or everything that is wrong with it. */
export type Imported =
  | {
      readonly ok: true;
      readonly config: Config;
      /** Changes that were made to a foreign document, in full sentences. */
      readonly notes: string[];
      /** The document had groups only, and upstreams that they need. It says nothing of keys and the rest. */
      readonly groupsOnly: boolean;
      /** Translates a path back into a foreign document that says itself where its parts went. */
      readonly pathOf?: (path: string) => string;
    }
  | { readonly ok: false; readonly errors: FieldError[] };

const OWN_KEYS = Object.keys(configSchema.shape);

/** Beginnings of providers' keys and of our own. Configurations are shown and logged: no key belongs there. */
const KEY_PREFIXES: readonly string[] = [
  'sk-',
  'sk_',
  'hg_',
  'bearer ',
  ...PROVIDERS.flatMap(({ keyPrefixes = [] }) => keyPrefixes),
];

/**
 * Checks a document by its fields alone: Headgate's own shape or one of the foreign ones. Whether
 * its groups and upstreams make sense together is checked where the built-in upstreams are known.
 */
export function importConfig(document: unknown): Imported {
  const foreign = foreignKeys(document);
  if (foreign.length === 0) return importOwn(document);
  const mixed = mixedKeys(document, foreign);
  if (mixed !== null) return { ok: false, errors: [mixed] };
  const converted = convertForeign(document);
  if (!converted.ok) return converted;
  const { notes, pathOf } = converted;
  const imported = importOwn(converted.config);
  if (imported.ok) {
    return { ...imported, notes, groupsOnly: true, ...(pathOf === undefined ? {} : { pathOf }) };
  }
  if (pathOf === undefined) return imported;
  const errors = imported.errors.map(({ path, message }) => ({ path: pathOf(path), message }));
  return { ok: false, errors };
}

/** Writes a whole configuration, every default included. */
export function exportConfig(config: Config, format: 'json' | 'yaml'): string {
  return format === 'json'
    ? `${JSON.stringify(config, null, 2)}\n`
    : stringify(config, { aliasDuplicateObjects: false, lineWidth: 0 });
}

function importOwn(document: unknown): Imported {
  const parsed = configSchema.safeParse(withoutOldDefaults(document));
  if (!parsed.success) {
    return { ok: false, errors: explainIssues(parsed.error, configSchema, document) };
  }
  const errors = [...keyLikeFields(parsed.data), ...sayingMore(parsed.data)];
  if (errors.length > 0) return { ok: false, errors };
  const config = { ...parsed.data, groups: parsed.data.groups.map(withImpliedWay) };
  const notes = [...laneNotes(document, config), ...connectionNotes(document)];
  return { ok: true, config, notes, groupsOnly: false };
}

function mixedKeys(document: unknown, foreign: readonly string[]): FieldError | null {
  if (Array.isArray(document)) return null;
  const own = Object.keys(Object(document)).filter((key) => OWN_KEYS.includes(key));
  const shapes = new Set(foreign.map((key) => (key === 'rate_limit' ? 'model' : key)));
  const [first = ''] = foreign;
  if (own.length > 0) {
    return {
      path: first,
      message: `cannot stand beside "${own.join('", "')}": a document has one shape; write its groups under "groups"`,
    };
  }
  if (shapes.size > 1) {
    return {
      path: first,
      message: `cannot stand beside "${foreign.slice(1).join('", "')}": import one shape at a time`,
    };
  }
  return null;
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

function isKeyLike(text: string): boolean {
  const lower = text.toLowerCase();
  return KEY_PREFIXES.some((prefix) => lower.startsWith(prefix));
}
