import { isDeepStrictEqual } from 'node:util';
import { writeFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { checkConfig } from '../../../src/config/check-config.ts';
import type { Converted } from '../../../src/config/foreign-groups.ts';
import { importConfig } from '../../../src/config/import-config.ts';
import { keepKnownCaps } from '../../../src/config/keep-known-caps.ts';
import type { FieldError } from '../../../src/config/field-error.ts';
import type { Config } from '../../../src/contract/config/config.ts';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';
import { EXIT, Failure } from '../failure.ts';
import { noteAll, show, type Output } from '../output.ts';
import { convertFlags } from '../shaper-flags.ts';
import { readDocument, readText } from './config.ts';

/** Systems whose configurations are turned into ours, and a field by which each is known. */
const SHAPES = {
  litellm: ['model_list'],
  clawith: ['concurrency_groups'],
  picoclaw: ['model_list', 'models', 'model', 'list'],
  shaper: [],
} as const;

export type ForeignSystem = keyof typeof SHAPES;

export const FOREIGN_SYSTEMS = Object.keys(SHAPES) as readonly ForeignSystem[];

/** A configuration in our shape, and what is to be known of it. */
interface Turned {
  readonly config: Config;
  readonly notes: readonly string[];
}

/** Turns a file of another system into our shape. Nobody is asked: it is read and changed before it is applied. */
export async function importFile(
  output: Output,
  system: ForeignSystem,
  file: string,
  to: string | undefined,
): Promise<void> {
  const { config, notes } =
    system === 'shaper'
      ? fromFlags(convertFlags(await readText(file)))
      : turned(system, await readDocument(file));
  const { errors, warnings } = checkConfig(config, BUILT_IN_UPSTREAMS, {
    privateUpstreams: true,
    jurisdiction: null,
  });
  // Upstreams of the operator's own are not known here, so what is wrong may be right where it is applied.
  const all = [...notes, ...errors.map(({ path, message }) => `${path}: ${message}`), ...warnings];
  const document = short(config);
  const yaml = stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 });
  if (to !== undefined) await writeFile(to, yaml);
  if (to === undefined || output.isJson) {
    show(output, { config: document, notes: all }, () => yaml.trimEnd());
  }
  if (!output.isJson) noteAll(output, all);
}

function turned(system: Exclude<ForeignSystem, 'shaper'>, document: unknown): Turned {
  const keys = Array.isArray(document) ? ['list'] : Object.keys(Object(document));
  if (!SHAPES[system].some((key) => keys.includes(key))) {
    const wanted = SHAPES[system].filter((key) => key !== 'list').join(', ');
    throw new Failure(EXIT.invalid, `That is no configuration of ${system}: expected ${wanted}.`);
  }
  const imported = importConfig(document);
  if (!imported.ok) throw refusal(imported.errors);
  return completed(imported.config, imported.notes);
}

function fromFlags(converted: Converted): Turned {
  if (!converted.ok) throw refusal(converted.errors);
  const imported = importConfig(converted.config);
  if (!imported.ok) throw refusal(imported.errors);
  return { config: imported.config, notes: converted.notes };
}

function completed(config: Config, notes: readonly string[]): Turned {
  const kept = keepKnownCaps(config);
  return { config: kept.config, notes: [...notes, ...kept.notes] };
}

function refusal(errors: readonly FieldError[]): Failure {
  const lines = errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  return new Failure(EXIT.invalid, lines.join('\n'));
}

/** Leaves out whatever is as it would be anyway. */
function short({ upstreams, groups }: Config): object {
  const group = groupSchema.parse({ name: 'x' });
  const [member] = groupSchema.parse({ name: 'x', members: [{ upstream: 'x' }] }).members;
  return {
    ...(upstreams.length === 0
      ? {}
      : {
          upstreams: upstreams.map(({ id, base_url: base, dialect, auth }) =>
            without({ id, base_url: base, dialect, auth }, {}),
          ),
        }),
    groups: groups.map((each) => ({
      ...without(each, group),
      ...(each.members.length === 0
        ? {}
        : { members: each.members.map((one) => without(one, { ...member, upstream: '' })) }),
    })),
  };
}

/** Drops fields that are equal to those of `defaults`, however deep. */
function without(value: object, defaults: object): object {
  const usual = new Map<string, unknown>(Object.entries(defaults));
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]: [string, unknown]) => {
      const other = usual.get(name);
      if (each === undefined || isDeepStrictEqual(each, other)) return [];
      const isNested = isPlain(each) && isPlain(other);
      return [[name, isNested ? without(each, other) : each]];
    }),
  );
}

const isPlain = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
