import {
  configSchema,
  type Config,
  type ConfigInput,
} from '../../../src/contract/config/config.ts';
import { ticked, type FieldError } from '../../../src/config/field-error.ts';
import { readOwnDocument, withoutExtensions } from '../../../src/config/own-config.ts';
import { foreignShapesOf, type FittingShape, type ForeignSource } from './formats.ts';
import { secretOfNote } from './groups.ts';

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
  if (shape === undefined) {
    const own = readOwnDocument(document);
    return own.ok ? { ...own, omitted: [], groupsOnly: false } : own;
  }
  const mixed = mixedKeys(document, shapes);
  if (mixed !== null) return { ok: false, errors: [mixed] };
  const converted = shape.convert(source);
  if (!converted.ok) return converted;
  const { notes, omitted = [], pathOf = (path: string) => path } = converted;
  return importPruned({ config: converted.config, notes, omitted, pathOf }, () => []);
}

/** Returns whether a document has the format of another system. */
export function isForeign(document: unknown): boolean {
  return foreignShapesOf(withoutExtensions(document), {}).length > 0;
}

type ForeignConfig = Pick<Extract<Imported, { ok: true }>, 'notes' | 'omitted'> & {
  readonly config: ConfigInput;
  readonly pathOf: (path: string) => string;
};

/** Imports the parts of a foreign configuration that a check accepts. */
export function importPruned(
  foreign: ForeignConfig,
  check: (config: Config) => readonly FieldError[],
): Imported {
  const steps = prunings(foreign);
  let step = steps.next();
  while (step.done !== true) step = steps.next(check(step.value));
  return step.value;
}

/**
 * Does the same for a check that the caller makes: yields each configuration to check, and expects its errors.
 */
export function* prunings({
  config,
  notes,
  omitted,
  pathOf,
}: ForeignConfig): Generator<Config, Imported, readonly FieldError[]> {
  const steps = pruneRefused(config);
  let step = steps.next();
  while (step.done !== true) {
    const own = readOwnDocument(step.value);
    step = steps.next(own.ok ? yield own.config : own.errors);
  }
  const pruned = step.value;
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
  const imported = readOwnDocument(pruned.config);
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

interface Pruned {
  readonly config: ConfigInput;
  /** Errors of removed parts, with paths in the original configuration. */
  readonly removed: readonly FieldError[];
  /** Errors of parts that cannot be removed alone. */
  readonly errors: readonly FieldError[];
  /** Translates a path in the remaining configuration to one in the original. */
  readonly pathOf: (path: string) => string;
}

/** A group, upstream or member, and its place in the original configuration. */
interface ConfigItem<Part> {
  readonly part: Part;
  readonly at: number;
}

interface PlacedGroup extends ConfigItem<NonNullable<ConfigInput['groups']>[number]> {
  /** Places of its members. */
  readonly members: readonly number[];
}

const PART = /^(groups|upstreams)\[(\d+)\](?:\.members\[(\d+)\])?/;

/**
 * Removes each part of a converted configuration that a check rejects, until it rejects nothing: a member, a group
 * without members, or an upstream. One wrong entry of a foreign document therefore affects no other. It yields each
 * configuration to check, and expects its errors.
 */
function* pruneRefused(config: ConfigInput): Generator<ConfigInput, Pruned, readonly FieldError[]> {
  let groups = (config.groups ?? []).map((part, at): PlacedGroup => ({
    part,
    at,
    members: (part.members ?? []).map((_member, index) => index),
  }));
  let upstreams = (config.upstreams ?? []).map(
    (part, at): ConfigItem<NonNullable<ConfigInput['upstreams']>[number]> => ({ part, at }),
  );
  const removed: FieldError[] = [];
  for (;;) {
    const left = { ...config, ...partsOf(groups, upstreams) };
    const [nowGroups, nowUpstreams] = [groups, upstreams];
    const pathOf = (path: string): string => firstPath(path, nowGroups, nowUpstreams);
    const errors = yield left;
    const blamed = new Map<string, FieldError>();
    for (const error of errors) {
      const [part] = PART.exec(error.path) ?? [];
      if (part !== undefined && !blamed.has(part)) blamed.set(part, error);
    }
    if (errors.length === 0 || blamed.size === 0) {
      return { config: left, removed, errors, pathOf };
    }
    removed.push(
      ...[...blamed.values()].map(({ path, message }) => ({ path: pathOf(path), message })),
    );
    upstreams = upstreams.filter((_upstream, index) => !blamed.has(`upstreams[${index}]`));
    groups = groups.flatMap((group, index) => withoutBlamed(group, `groups[${index}]`, blamed));
  }
}

function partsOf(
  groups: readonly PlacedGroup[],
  upstreams: readonly ConfigItem<NonNullable<ConfigInput['upstreams']>[number]>[],
) {
  return {
    upstreams: upstreams.map(({ part }) => part),
    groups: groups.map(({ part }) => part),
  };
}

/** Removes a group that is rejected, or whose last member is rejected. */
function withoutBlamed(
  { part, at, members }: PlacedGroup,
  path: string,
  blamed: ReadonlyMap<string, FieldError>,
): PlacedGroup[] {
  if (blamed.has(path)) return [];
  const stays = members.map((_member, index) => !blamed.has(`${path}.members[${index}]`));
  if (stays.every(Boolean)) return [{ part, at, members }];
  if (!stays.some(Boolean)) return [];
  const left = part.members?.filter((_member, index) => stays[index]) ?? [];
  return [{ part: { ...part, members: left }, at, members: members.filter((_, i) => stays[i]) }];
}

function firstPath(
  path: string,
  groups: readonly PlacedGroup[],
  upstreams: readonly ConfigItem<NonNullable<ConfigInput['upstreams']>[number]>[],
): string {
  return path
    .replace(/^upstreams\[(\d+)\]/, (all, index) => {
      const at = upstreams[Number(index)]?.at;
      return at === undefined ? all : `upstreams[${at}]`;
    })
    .replace(/^groups\[(\d+)\](?:\.members\[(\d+)\])?/, (all, index, member) => {
      const group = groups[Number(index)];
      if (group === undefined) return all;
      const whole = `groups[${group.at}]`;
      return member === undefined ? whole : `${whole}.members[${group.members[Number(member)]}]`;
    });
}
