import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import {
  ConfigShapeError,
  ConfigSyntaxError,
  parseConfigText,
} from '../../../src/config/parse-text.ts';
import {
  applyImport,
  planImport,
  type ConfigPreview,
} from '../../../packages/import/src/plan-import.ts';
import { escapeUnseen } from '../../serve/log-lines.ts';
import { EXIT, CommandFailure, type ExitCode } from '../failure.ts';
import { noteAll, show, table, type Output } from '../output.ts';
import { taken, type CliTarget } from '../target.ts';
import { shortGroup, shortUpstream } from '../without-defaults.ts';

/** Reads a file as UTF-8 text. The name `-` stands for standard input. */
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

/** Reads a JSON or YAML document. A file without a known extension may be either. */
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

/** Requests the changes that a document would make, in Headgate's format or that of another system. */
async function planOf(target: CliTarget, document: unknown) {
  const planned = await planImport(target.admin, document);
  if (!planned.ok) return taken<never>(planned);
  return { ...planned, preview: taken({ ...planned, body: planned.preview }) };
}

/** Formats a value. Whole groups and upstreams are printed without fields that have their default value. */
function valueText(path: string, value: unknown): string {
  if (value === undefined) return '(none)';
  const [, list] = /^(groups|upstreams)\[[^\]]*\]$/.exec(path) ?? [];
  const isWhole = list !== undefined && typeof value === 'object' && value !== null;
  const shorten = list === 'groups' ? shortGroup : shortUpstream;
  return escapeUnseen(JSON.stringify(isWhole ? shorten(value) : value));
}

function planText({ version, changes, changes_omitted: omitted }: ConfigPreview): string {
  if (changes.length === 0) return `No changes to version ${version}.`;
  return [
    `Changes to version ${version}:`,
    ...changes.map(
      ({ path, from, to }) =>
        `  ${escapeUnseen(path)}: ${valueText(path, from)} → ${valueText(path, to)}`,
    ),
    ...(omitted > 0 ? [`  and ${omitted} more`] : []),
  ].join('\n');
}

/** Shows the changes that a file would make to the configuration. */
export async function diff(target: CliTarget, output: Output, file: string): Promise<ExitCode> {
  const { preview: plan } = await planOf(target, await readDocument(file));
  show(output, plan, () => planText(plan));
  noteAll(output, plan.warnings);
  return plan.changes.length === 0 ? EXIT.ok : EXIT.no;
}

/** Asks for confirmation. Only `y` and `yes` confirm. Any other line, or the end of the input, declines. */
export async function isConfirmed(output: Output, question: string): Promise<boolean> {
  output.note(`${question} [y/N]`);
  const lines = createInterface({ input: process.stdin });
  for await (const line of lines) {
    lines.close();
    return /^\s*y(es)?\s*$/i.test(line);
  }
  return false;
}

/** Shows the changes that a file makes and, once confirmed, replaces the configuration with it. */
export async function apply(
  target: CliTarget,
  output: Output,
  file: string,
  isSure: boolean,
): Promise<ExitCode> {
  if (file === '-' && !isSure) {
    throw new CommandFailure(
      EXIT.usage,
      'The command cannot ask for confirmation because standard input holds the document. Add --yes.',
    );
  }
  const planned = await planOf(target, await readDocument(file));
  return change(output, planned.preview, isSure, () => applyImport(target.admin, planned));
}

/** Shows a plan and makes the change once confirmed. */
async function change(
  output: Output,
  plan: ConfigPreview,
  isSure: boolean,
  make: () => Promise<Parameters<typeof taken<{ readonly version: number }>>[0]>,
): Promise<ExitCode> {
  if (!output.isJson) output.out(planText(plan));
  noteAll(output, plan.warnings);
  if (plan.changes.length === 0) {
    if (output.isJson) show(output, { applied: false, plan }, () => '');
    return EXIT.ok;
  }
  // In JSON mode the plan is printed on standard error, because the question refers to it.
  if (!isSure && output.isJson) output.note(planText(plan));
  if (!isSure && !(await isConfirmed(output, 'Apply these changes?'))) {
    show(output, { applied: false, plan }, () => 'Nothing was changed.');
    return EXIT.no;
  }
  const { version } = taken(await make());
  show(output, { applied: true, version, plan }, () => `Applied as version ${version}.`);
  return EXIT.ok;
}

export async function listVersions(target: CliTarget, output: Output): Promise<void> {
  const kept = taken(await target.admin('GET /config/versions'));
  show(output, kept, () =>
    table(
      ['version', 'at', 'by', 'change'],
      kept.versions.map(({ version, at, actor, action }) => [version, at, actor, action]),
    ),
  );
}

/** A rollback to a version, or the undoing of the change that made a version. */
export interface RollbackOptions {
  readonly version?: number;
  readonly undo?: number;
  readonly conflicts?: 'refuse' | 'keep' | 'overwrite';
}

/** Shows the changes that a rollback makes and applies them once confirmed. */
export async function rollBack(
  target: CliTarget,
  output: Output,
  options: RollbackOptions,
  isSure: boolean,
): Promise<ExitCode> {
  const answer = await target.admin('POST /config/preview', {
    query: { as: 'rollback' },
    body: options,
  });
  // The version of the plan turns a concurrent change into a conflict.
  const ifMatch = answer.etag ?? '';
  return change(output, taken(answer), isSure, () =>
    target.admin('POST /config/rollback', { body: options, ifMatch }),
  );
}
