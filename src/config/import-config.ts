import { stringify } from 'yaml';
import { configSchema, type Config, type ConfigInput } from '../contract/config/config.ts';
import { explainIssues } from './explain-issues.ts';
import { ticked, type FieldError } from './field-error.ts';
import { isKeyLike } from './key-like.ts';
import { connectionNotes } from './check/sockets.ts';
import { contradictedNames } from './check/configured-auto-groups.ts';
import { withImpliedMatch } from '../routing/configured-auto-groups.ts';
import { foreignShapesOf, type FittingShape, type ForeignSource } from './convert-foreign.ts';
import { secretOfNote } from './foreign-secrets.ts';
import { pruneRefused } from './prune-refused.ts';

export { ConfigShapeError, ConfigSyntaxError, parseConfigText } from './parse-text.ts';

/** A document as a whole configuration, or all of its errors. */
export type Imported =
  | {
      readonly ok: true;
      readonly config: Config;
      /** Changes made to a foreign document, in full sentences. */
      readonly notes: string[];
      /** Parts of a foreign document that were not imported, with their paths in it. */
      readonly omitted: readonly FieldError[];
      /** Whether the document has only groups and the upstreams that they need, and no keys or other settings. */
      readonly groupsOnly: boolean;
      /** Translates a path back to a foreign document. */
      readonly pathOf?: (path: string) => string;
    }
  | { readonly ok: false; readonly errors: FieldError[] };

const OWN_KEYS = Object.keys(configSchema.shape);

/**
 * Checks a document by its fields alone, in Headgate's own shape or a foreign one. `checkConfig` checks whether its
 * groups and upstreams are consistent.
 *
 * A part of a foreign document that cannot be imported is listed in `omitted`, and the rest is imported. If nothing is
 * left, the omitted parts are the errors.
 */
export function importConfig(written: unknown, source: ForeignSource = {}): Imported {
  const document = withoutExtensions(written);
  const shapes = foreignShapesOf(document, source);
  const [shape] = shapes;
  if (shape === undefined) return importOwn(document);
  const mixed = mixedKeys(document, shapes);
  if (mixed !== null) return { ok: false, errors: [mixed] };
  const converted = shape.convert(source);
  if (!converted.ok) return converted;
  const { notes, omitted = [], pathOf = (path: string) => path } = converted;
  return importPruned({ config: converted.config, notes, omitted, pathOf }, () => []);
}

type Foreign = Pick<Extract<Imported, { ok: true }>, 'notes' | 'omitted'> & {
  readonly config: ConfigInput;
  readonly pathOf: (path: string) => string;
};

/** Imports the parts of a foreign configuration that a check accepts. */
export function importPruned(
  { config, notes, omitted, pathOf }: Foreign,
  check: (config: Config) => readonly FieldError[],
): Imported {
  const pruned = pruneRefused(config, (each) => {
    const imported = importOwn(each);
    return imported.ok ? check(imported.config) : imported.errors;
  });
  const inDocument = ({ path, message }: FieldError): FieldError => ({
    path: pathOf(path),
    message,
  });
  const all = [...omitted, ...pruned.removed.map(inDocument)];
  if (pruned.errors.length > 0) {
    const errors = pruned.errors.map(({ path, message }) => ({
      path: pruned.pathOf(path),
      message,
    }));
    return { ok: false, errors: errors.map(inDocument) };
  }
  if (all.length > 0 && pruned.config.groups?.length === 0) return { ok: false, errors: all };
  const imported = importOwn(pruned.config);
  if (!imported.ok) return imported;
  return {
    ...imported,
    notes: notesOf(imported.config, notes),
    omitted: all,
    groupsOnly: true,
    pathOf: (path) => pathOf(pruned.pathOf(path)),
  };
}

/** Removes notes about secrets of omitted parts. */
function notesOf({ groups, upstreams }: Config, notes: readonly string[]): string[] {
  const secrets = new Set([
    ...upstreams.map(({ auth }) => (typeof auth === 'object' ? auth.secret : null)),
    ...groups.flatMap(({ members }) => members.map(({ secret }) => secret ?? null)),
  ]);
  return notes.filter((note) => {
    const secret = secretOfNote(note);
    return secret === null || secrets.has(secret);
  });
}

/** Describes the omitted parts of a foreign document, one sentence for each. */
export function omissionTexts(omitted: readonly FieldError[]): string[] {
  return omitted.map(({ path, message }) => `Not imported: ${path}: ${message}.`);
}

/**
 * Removes top-level fields that configure nothing: `$schema`, which editors read, and keys that begin with `x-`, which
 * hold values for YAML aliases.
 */
function withoutExtensions(document: unknown): unknown {
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

function importOwn(document: unknown): Imported {
  const parsed = configSchema.safeParse(document);
  if (!parsed.success) {
    return { ok: false, errors: explainIssues(parsed.error, configSchema, document) };
  }
  const errors = [...keyLikeFields(parsed.data), ...contradictedNames(parsed.data)];
  if (errors.length > 0) return { ok: false, errors };
  const config = { ...parsed.data, groups: parsed.data.groups.map(withImpliedMatch) };
  const notes = connectionNotes(document);
  return { ok: true, config, notes, omitted: [], groupsOnly: false };
}

/** Finds a document with fields of two shapes. */
function mixedKeys(document: unknown, shapes: readonly FittingShape[]): FieldError | null {
  if (Array.isArray(document)) return null;
  const own = Object.keys(Object(document)).filter((key) => OWN_KEYS.includes(key));
  const [first = '', ...others] = shapes.map(({ field }) => field);
  if (own.length > 0) {
    return {
      path: first,
      message: `cannot be combined with ${ticked(own)}, because a document has one shape; write its groups under \`groups\``,
    };
  }
  if (others.length > 0) {
    return {
      path: first,
      message: `cannot be combined with ${ticked(others)}; import one shape at a time`,
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
