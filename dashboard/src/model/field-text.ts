import type { FieldKind, SchemaField } from './schema-fields.ts';

/**
 * Converts typed text to values and back. Invalid text is kept as it is, so that the schema reports it with the message
 * of the server.
 */

/** Parses a number. Returns the text itself if it is no number. */
export function numberFrom(text: string): unknown {
  const trimmed = text.trim().replace(/(?<=\d)[_,](?=\d{3}(?:\D|$))/g, '');
  return /^-?\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : trimmed;
}

/** Value of a number field. Empty input means null if the field is nullable, else the default. */
export function valueFrom(text: string, field: SchemaField): unknown {
  if (text.trim() === '') return field.isNullable ? null : undefined;
  return numberFrom(text);
}

export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === null || value === undefined ? '' : JSON.stringify(value);
}

/** Parses entries on lines or between commas. Patterns and ids contain neither. */
export function listFrom(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

export function listText(value: unknown): string {
  return Array.isArray(value) ? value.map(textOf).join('\n') : textOf(value);
}

/** Whether a row is empty, as new rows are. */
function isBlank(row: readonly string[]): boolean {
  return row.every((cell) => cell.trim() === '');
}

/** Rows of a record of numbers or texts. */
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

export function textPairsFrom(rows: readonly (readonly string[])[]): unknown {
  return Object.fromEntries(
    rows.filter((row) => !isBlank(row)).map(([name = '', text = '']) => [name.trim(), text.trim()]),
  );
}

/** Names that occur in several rows. Only the last row of each would count. */
export function repeatedNames(rows: readonly (readonly string[])[]): string[] {
  const names = rows.filter((row) => !isBlank(row)).map(([name = '']) => name.trim());
  return [...new Set(names.filter((name, at) => names.indexOf(name) !== at))];
}

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

/** Rows of the spill targets: upstream and, optionally, model. */
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

/** Formats an instant as a `datetime-local` value: to the minute, in the time zone of the reader. */
export function localFrom(instant: unknown): string {
  const at = new Date(textOf(instant));
  if (instant === null || instant === undefined || Number.isNaN(at.getTime())) return '';
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

/** Parses a `datetime-local` value to UTC. Empty input is null. */
export function instantFrom(local: string): string | null {
  const at = new Date(local);
  return local === '' || Number.isNaN(at.getTime()) ? null : at.toISOString();
}

const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 3 });

/** Describes the bounds and default of a field, such as `0 to 5,000. Default: 1,000.` */
export function boundsText(field: SchemaField): string {
  const bounds = boundsOf(field.kind);
  const fallback = fallbackText(field);
  return [bounds, fallback].filter((part) => part !== '').join(' ');
}

function boundsOf(kind: FieldKind): string {
  if (kind.type === 'list') return 'One per line.';
  // Very large bounds do not help the reader.
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
