import type { FieldKind, SchemaField } from './schema-fields.ts';

/**
 * From text that people type to values and back. Text that means nothing is kept as it is: the schema then says
 * what is wrong with it, in the words in which the server would.
 */

/** A number, or the text itself where it is none. */
export function numberFrom(text: string): unknown {
  const trimmed = text.trim().replace(/(?<=\d)[_,](?=\d{3}(?:\D|$))/g, '');
  return /^-?\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : trimmed;
}

/** The value of a number's field. Nothing typed: null where that is allowed, else the default. */
export function valueFrom(text: string, field: SchemaField): unknown {
  if (text.trim() === '') return field.isNullable ? null : undefined;
  return numberFrom(text);
}

/** A value as a line of text. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === null || value === undefined ? '' : JSON.stringify(value);
}

/** One entry per line, or with commas between them: patterns and ids hold neither. */
export function listFrom(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/** A list, one entry per line. */
export function listText(value: unknown): string {
  return Array.isArray(value) ? value.map(textOf).join('\n') : textOf(value);
}

/** A row of cells without anything in it, as one begins that is added. */
function isBlank(row: readonly string[]): boolean {
  return row.every((cell) => cell.trim() === '');
}

/** Numbers or texts by name, a row each. */
export function pairRows(value: unknown): string[][] {
  return Object.entries(Object(value) as object).map(([name, number]) => [name, textOf(number)]);
}

export function pairsFrom(rows: readonly (readonly string[])[]): unknown {
  return Object.fromEntries(
    rows
      .filter((row) => !isBlank(row))
      .map(([name = '', number = '']) => [name.trim(), numberFrom(number)]),
  );
}

/** Texts by name. */
export function textPairsFrom(rows: readonly (readonly string[])[]): unknown {
  return Object.fromEntries(
    rows.filter((row) => !isBlank(row)).map(([name = '', text = '']) => [name.trim(), text.trim()]),
  );
}

/** Names that stand in more than one row: only the last of them would count. */
export function repeatedNames(rows: readonly (readonly string[])[]): string[] {
  const names = rows.filter((row) => !isBlank(row)).map(([name = '']) => name.trim());
  return [...new Set(names.filter((name, at) => names.indexOf(name) !== at))];
}

/** Rules of lanes by model, a row each. */
export function laneRuleRows(value: unknown): string[][] {
  return listOf(value).map((rule) => {
    const { models, lane } = Object(rule) as { models?: unknown; lane?: unknown };
    return [Array.isArray(models) ? models.join(', ') : textOf(models), textOf(lane)];
  });
}

export function laneRulesFrom(rows: readonly (readonly string[])[]): unknown {
  return rows
    .filter(([models = '']) => models.trim() !== '')
    .map(([models = '', lane]) => ({ models: listFrom(models), lane }));
}

/** Upstreams that calls spill to, each with the model that it is asked for there. */
export function spillRows(value: unknown): string[][] {
  return listOf(value).map((each) => {
    if (typeof each === 'string') return [each, ''];
    const { upstream, model } = Object(each) as { upstream?: unknown; model?: unknown };
    return [textOf(upstream), textOf(model)];
  });
}

export function spillFrom(rows: readonly (readonly string[])[]): unknown {
  return rows
    .filter((row) => !isBlank(row))
    .map(([upstream = '', model = '']) =>
      model.trim() === '' ? upstream.trim() : { upstream: upstream.trim(), model: model.trim() },
    );
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** An instant as `datetime-local` has it, to the minute, in the time of whoever reads. */
export function localFrom(instant: unknown): string {
  const at = new Date(textOf(instant));
  if (instant === null || instant === undefined || Number.isNaN(at.getTime())) return '';
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

/** That instant in UTC. Nothing entered: null. */
export function instantFrom(local: string): string | null {
  const at = new Date(local);
  return local === '' || Number.isNaN(at.getTime()) ? null : at.toISOString();
}

const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 3 });

/** Tells bounds and default of a field, as in `0 to 5,000. Default: 1,000.` */
export function boundsText(field: SchemaField): string {
  const bounds = boundsOf(field.kind);
  const fallback = fallbackText(field);
  return [bounds, fallback].filter((part) => part !== '').join(' ');
}

function boundsOf(kind: FieldKind): string {
  if (kind.type === 'list') return 'One per line.';
  // Bounds that nobody comes near are no help.
  if (kind.type !== 'number' || kind.max >= 1_000_000_000) return '';
  const range = `${NUMBER.format(kind.min)} to ${NUMBER.format(kind.max)}`;
  return kind.takesAuto ? `auto, or ${range}.` : `${range}.`;
}

function fallbackText({ kind, fallback, unit, isOptional }: SchemaField): string {
  if (fallback === undefined) return isOptional ? '' : 'Required.';
  if (fallback === null) return 'Default: none.';
  if (typeof fallback === 'boolean') return `Default: ${fallback ? 'on' : 'off'}.`;
  if (typeof fallback === 'number') {
    return `Default: ${NUMBER.format(fallback)}${unit === 'ms' ? ' ms' : ''}.`;
  }
  const isShown = kind.type !== 'special' && typeof fallback === 'string' && fallback !== '';
  return isShown ? `Default: ${fallback}.` : '';
}
