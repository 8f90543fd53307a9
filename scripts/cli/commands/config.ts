import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import {
  ConfigShapeError,
  ConfigSyntaxError,
  parseConfigText,
} from '../../../src/config/import-config.ts';
import { escapeUnseen } from '../../serve/log-lines.ts';
import { EXIT, CommandFailure, type ExitCode } from '../failure.ts';
import { noteAll, show, table, type Output } from '../output.ts';
import { taken, type CliTarget } from '../target.ts';
import { shortGroup, shortUpstream } from '../without-defaults.ts';

/** Reads a file, or what is piped in where its name is a dash. */
export async function readText(file: string): Promise<string> {
  const isInput = file === '-';
  const name = isInput ? 'Standard input' : file;
  const bytes = await (isInput ? buffer(process.stdin) : readFile(file)).catch(
    ({ code }: NodeJS.ErrnoException) => {
      throw new CommandFailure(EXIT.usage, `${name} cannot be read (${code}).`);
    },
  );
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new CommandFailure(EXIT.usage, `${name} is not UTF-8 text. Save it as UTF-8.`);
  }
}

/** Reads a document of JSON or YAML. */
export async function readDocument(file: string): Promise<unknown> {
  const written = await readText(file);
  try {
    const [, ending] = /\.(json|ya?ml)$/i.exec(file) ?? [];
    const type = ending?.toLowerCase() === 'json' ? 'application/json' : 'application/yaml';
    return parseConfigText(written, ending === undefined ? null : type);
  } catch (error) {
    if (error instanceof ConfigShapeError) throw new CommandFailure(EXIT.usage, error.message);
    if (error instanceof ConfigSyntaxError) throw new CommandFailure(EXIT.invalid, error.message);
    throw error;
  }
}

/** Asks for the changes that a document, or a way back, would make to one version. */
async function planOf(target: CliTarget, document: unknown, as: 'put' | 'rollback' = 'put') {
  // The cast is sound: the route reads and checks the body by itself, whatever shape it has.
  const answer = await target.admin('previewConfig', { query: { as }, body: document as never });
  const plan = taken(answer);
  return { plan, etag: answer.etag ?? '' };
}

type Plan = Awaited<ReturnType<typeof planOf>>['plan'];

/** Writes a value; of a whole group or upstream, what is not as it would be anyway. */
function valueText(path: string, value: unknown): string {
  if (value === undefined) return '(nothing)';
  const [, list] = /^(groups|upstreams)\[[^\]]*\]$/.exec(path) ?? [];
  const isWhole = list !== undefined && typeof value === 'object' && value !== null;
  const shorten = list === 'groups' ? shortGroup : shortUpstream;
  return escapeUnseen(JSON.stringify(isWhole ? shorten(value) : value));
}

function planText({ version, changes, changes_omitted: omitted }: Plan): string {
  if (changes.length === 0) return `Nothing differs from version ${version}.`;
  return [
    `Against version ${version}:`,
    ...changes.map(
      ({ path, from, to }) =>
        `  ${escapeUnseen(path)}: ${valueText(path, from)} → ${valueText(path, to)}`,
    ),
    ...(omitted > 0 ? [`  and ${omitted} more`] : []),
  ].join('\n');
}

/** Shows how a file differs from what is configured. */
export async function diff(target: CliTarget, output: Output, file: string): Promise<ExitCode> {
  const { plan } = await planOf(target, await readDocument(file));
  show(output, plan, () => planText(plan));
  noteAll(output, plan.warnings);
  return plan.changes.length === 0 ? EXIT.ok : EXIT.no;
}

/** Asks a person; everything but a yes is a no, and so is the end of the input. */
export async function isConfirmed(output: Output, question: string): Promise<boolean> {
  output.note(`${question} [y/N]`);
  const lines = createInterface({ input: process.stdin });
  for await (const line of lines) {
    lines.close();
    return /^\s*y(es)?\s*$/i.test(line);
  }
  return false;
}

/** Shows what a file changes and, with a yes, puts it in the place of the configuration. */
export async function apply(
  target: CliTarget,
  output: Output,
  file: string,
  isSure: boolean,
): Promise<ExitCode> {
  if (file === '-' && !isSure) {
    throw new CommandFailure(
      EXIT.usage,
      'With the document on stdin there is nobody to ask: add --yes.',
    );
  }
  const document = await readDocument(file);
  const planned = await planOf(target, document);
  return change(output, planned, isSure, (ifMatch) =>
    target.admin('putConfig', { body: document as never, ifMatch }),
  );
}

/** Shows a plan and, with a yes, makes it so: what was looked at, so that whoever came between is a conflict. */
async function change(
  output: Output,
  { plan, etag }: Awaited<ReturnType<typeof planOf>>,
  isSure: boolean,
  make: (ifMatch: string) => Promise<Parameters<typeof taken<{ readonly version: number }>>[0]>,
): Promise<ExitCode> {
  if (!output.isJson) output.out(planText(plan));
  noteAll(output, plan.warnings);
  if (plan.changes.length === 0) {
    if (output.isJson) show(output, { applied: false, plan }, () => '');
    return EXIT.ok;
  }
  // Nobody says yes to what was not shown.
  if (!isSure && output.isJson) output.note(planText(plan));
  if (!isSure && !(await isConfirmed(output, 'Apply this?'))) {
    show(output, { applied: false, plan }, () => 'Nothing was changed.');
    return EXIT.no;
  }
  const { version } = taken(await make(etag));
  show(output, { applied: true, version, plan }, () => `Applied as version ${version}.`);
  return EXIT.ok;
}

/** Shows the versions that are kept. */
export async function listVersions(target: CliTarget, output: Output): Promise<void> {
  const kept = taken(await target.admin('listVersions'));
  show(output, kept, () =>
    table(
      ['version', 'at', 'by', 'change'],
      kept.versions.map(({ version, at, actor, action }) => [version, at, actor, action]),
    ),
  );
}

/** A way back: everything as at a version, or one change taken back. */
export interface RollbackOptions {
  readonly version?: number;
  readonly undo?: number;
  readonly conflicts?: 'refuse' | 'keep' | 'overwrite';
}

/** Shows what a way back changes and, with a yes, goes it. */
export async function rollBack(
  target: CliTarget,
  output: Output,
  way: RollbackOptions,
  isSure: boolean,
): Promise<ExitCode> {
  const planned = await planOf(target, way, 'rollback');
  return change(output, planned, isSure, (ifMatch) =>
    target.admin('rollBack', { body: way, ifMatch }),
  );
}
