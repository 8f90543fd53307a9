import { writeFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { checkConfig } from '../../../src/config/check-config.ts';
import type { Converted } from '../../../packages/import/src/groups.ts';
import { ownKeyWarnings } from '../../../src/config/check/access.ts';
import { DOCUMENT_SYSTEMS, fieldsOfSystem } from '../../../packages/import/src/formats.ts';
import {
  importConfig,
  importPruned,
  omissionTexts,
  type Imported,
} from '../../../packages/import/src/import-config.ts';
import { keepKnownCaps } from '../../../packages/import/src/known-caps.ts';
import type { FieldError } from '../../../src/config/field-error.ts';
import type { Config } from '../../../src/contract/config/config.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';
import { resolveUpstreams } from '../../../src/routing/upstreams.ts';
import { EXIT, CommandFailure, type ExitCode } from '../failure.ts';
import { noteAll, show, type Output } from '../output.ts';
import { withIncludes } from '../litellm-includes.ts';
import { convertFlags } from '../shaper/convert-flags.ts';
import { shortGroup, shortUpstream } from '../without-defaults.ts';
import { readDocument, readText } from './config.ts';

/** Systems whose configurations can be imported, as the command names them. */
export const FOREIGN_SYSTEMS: readonly string[] = [...DOCUMENT_SYSTEMS, 'shaper'];

/**
 * Converts a file of another system into a Headgate configuration. It asks for no confirmation, because the result is
 * reviewed before it is applied.
 */
export async function importFile(
  output: Output,
  system: string,
  file: string,
  to: string | undefined,
): Promise<ExitCode> {
  const imported = refuseWrong(
    system === 'shaper'
      ? fromFlags(convertFlags(await readText(file)))
      : fromDocument(system, await documentOf(system, file)),
  );
  const { config, omitted } = imported;
  refuseCredentials(config);
  const notes = [...imported.notes, ...omissionTexts(omitted), ...warningsOf(config)];
  const document = short(config);
  const yaml = stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 });
  if (to !== undefined) await writeText(to, yaml);
  if (to === undefined || output.isJson) {
    show(output, { config: document, notes, omitted }, () => yaml.trimEnd());
  }
  if (!output.isJson) noteAll(output, notes);
  return omitted.length > 0 ? EXIT.partial : EXIT.ok;
}

/**
 * Removes what `apply` would reject on every deployment. The operator's own upstreams are unknown here, and so is
 * whether the deployment may reach private addresses.
 */
function refuseWrong({
  config,
  notes,
  omitted,
  pathOf = (path) => path,
}: Extract<Imported, { readonly ok: true }>): Extract<Imported, { readonly ok: true }> {
  const kept = keepKnownCaps(config);
  const foreign = { config: kept.config, notes: [...notes, ...kept.notes], omitted, pathOf };
  const settled = importPruned(
    foreign,
    (each) => checkConfig(each, BUILT_IN_UPSTREAMS, ANYWHERE).errors,
  );
  if (!settled.ok) throw refusal(settled.errors);
  return settled;
}

const ANYWHERE = { privateUpstreams: true, jurisdiction: null };

/** Lists the warnings of a configuration, and what `apply` rejects on Cloudflare only. */
function warningsOf(config: Config): string[] {
  const { warnings } = checkConfig(config, BUILT_IN_UPSTREAMS, ANYWHERE);
  const ownKeys = ownKeyWarnings({ ...config, groups: [] }, config, (each) =>
    resolveUpstreams(each, BUILT_IN_UPSTREAMS),
  );
  const there = { ...ANYWHERE, privateUpstreams: false };
  const onCloudflare = checkConfig(config, BUILT_IN_UPSTREAMS, there).errors;
  return [
    ...onCloudflare.map(
      ({ path, message }) => `On Cloudflare, headgate apply rejects this: ${path}: ${message}.`,
    ),
    ...warnings,
    ...ownKeys,
  ];
}

async function writeText(file: string, text: string): Promise<void> {
  await writeFile(file, text).catch((error: NodeJS.ErrnoException) => {
    throw new CommandFailure(EXIT.usage, `${file} cannot be written (${error.code}).`);
  });
}

/** Rejects URLs that may contain credentials, because the output would repeat them. */
function refuseCredentials({ upstreams }: Config): void {
  for (const { id, base_url: base } of upstreams) {
    const { username, password, search } = new URL(base ?? 'https://none');
    if (username + password + search === '') continue;
    const what = `The URL of upstream \`${id}\` contains a user name, a password or a query`;
    throw new CommandFailure(EXIT.invalid, `${what}. Remove it, and store keys as secrets.`);
  }
}

async function documentOf(system: string, file: string): Promise<unknown> {
  const document = await readDocument(file);
  return system === 'litellm' ? withIncludes(document, file, readDocument) : document;
}

function fromDocument(system: string, document: unknown): Extract<Imported, { readonly ok: true }> {
  const fields = Array.isArray(document) ? ['list'] : Object.keys(Object(document));
  const known = fieldsOfSystem(system);
  if (!known.some((field) => fields.includes(field))) {
    const expected = known.filter((field) => field !== 'list').join(', ');
    throw new CommandFailure(
      EXIT.invalid,
      `The file is not a ${system} configuration. Expected one of these fields: ${expected}.`,
    );
  }
  const imported = importConfig(document, { system, env: process.env });
  if (!imported.ok) throw refusal(imported.errors);
  return imported;
}

function fromFlags(converted: Converted): Extract<Imported, { readonly ok: true }> {
  if (!converted.ok) throw refusal(converted.errors);
  const imported = importConfig(converted.config);
  if (!imported.ok) throw refusal(imported.errors);
  const { notes, omitted = [], pathOf } = converted;
  return { ...imported, notes, omitted, ...(pathOf === undefined ? {} : { pathOf }) };
}

function refusal(errors: readonly FieldError[]): CommandFailure {
  const lines = errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  return new CommandFailure(EXIT.invalid, lines.join('\n'));
}

/** Removes fields that have their default value. */
function short({ upstreams, groups }: Config): object {
  return {
    ...(upstreams.length === 0 ? {} : { upstreams: upstreams.map(shortUpstream) }),
    groups: groups.map(shortGroup),
  };
}
