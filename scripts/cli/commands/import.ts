import { writeFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { checkConfig } from '../../../src/config/check-config.ts';
import type { Converted } from '../../../src/config/foreign-groups.ts';
import { ownKeyWarnings } from '../../../src/config/check/own-keys.ts';
import { importConfig } from '../../../src/config/import-config.ts';
import { keepKnownCaps } from '../../../src/config/keep-known-caps.ts';
import type { FieldError } from '../../../src/config/field-error.ts';
import type { Config } from '../../../src/contract/config/config.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';
import { resolveUpstreams } from '../../../src/routing/upstreams.ts';
import { EXIT, Failure } from '../failure.ts';
import { noteAll, show, type Output } from '../output.ts';
import { convertFlags } from '../shaper-flags.ts';
import { shortGroup, shortUpstream } from '../without-defaults.ts';
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
  refuseCredentials(config);
  const all = [...notes, ...refusalsOf(config)];
  const document = short(config);
  const yaml = stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 });
  if (to !== undefined) await writeText(to, yaml);
  if (to === undefined || output.isJson) {
    show(output, { config: document, notes: all }, () => yaml.trimEnd());
  }
  if (!output.isJson) noteAll(output, all);
}

/**
 * Lists what `apply` refuses in a configuration, and its warnings. Some errors depend on the target: the operator's own
 * upstreams are not known here, nor whether that Headgate reaches private addresses.
 */
function refusalsOf(config: Config): string[] {
  const here = { privateUpstreams: true, jurisdiction: null };
  const { errors, warnings } = checkConfig(config, BUILT_IN_UPSTREAMS, here);
  const ownKeys = ownKeyWarnings({ ...config, groups: [] }, config, (each) =>
    resolveUpstreams(each, BUILT_IN_UPSTREAMS),
  );
  const textOf = ({ path, message }: FieldError): string => `${path}: ${message}.`;
  const certain = errors.map(textOf);
  const elsewhere = checkConfig(config, BUILT_IN_UPSTREAMS, { ...here, privateUpstreams: false });
  const onCloudflare = elsewhere.errors.map(textOf).filter((text) => !certain.includes(text));
  return [
    ...certain.map((text) => `headgate apply refuses this: ${text}`),
    ...onCloudflare.map((text) => `On Cloudflare headgate apply refuses this: ${text}`),
    ...warnings,
    ...ownKeys,
  ];
}

async function writeText(file: string, text: string): Promise<void> {
  await writeFile(file, text).catch((error: NodeJS.ErrnoException) => {
    throw new Failure(EXIT.usage, `${file} cannot be written (${error.code}).`);
  });
}

/** Refuses addresses with what may open something: they would be repeated. */
function refuseCredentials({ upstreams }: Config): void {
  for (const { id, base_url: base } of upstreams) {
    const { username, password, search } = new URL(base ?? 'https://none');
    if (username + password + search === '') continue;
    const what = `The address of the upstream "${id}" has a user name, a password or a query`;
    throw new Failure(EXIT.invalid, `${what}. Take it out: keys become secrets of their own.`);
  }
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
  return {
    ...(upstreams.length === 0 ? {} : { upstreams: upstreams.map(shortUpstream) }),
    groups: groups.map(shortGroup),
  };
}
