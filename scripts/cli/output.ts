import Table from 'cli-table3';
import { escapeUnseen } from '../serve/log-lines.ts';

/**
 * Maximum lengths of a cell. The next shorter one applies if the table is too wide for the terminal, because callers
 * choose the names of agents and models.
 */
const CELL_LENGTHS = [48, 24, 16, 10] as const;

/** Maximum length of a cell in the first column, which holds the name for the next command. */
const NAME_LENGTH_MAX = 128;

type TableCell = string | number | null;

/** Streams of a command: results go to `out`, messages for people to `note`. */
export interface Output {
  readonly isJson: boolean;
  out(text: string): void;
  note(text: string): void;
}

/** Formats a cell and escapes characters that would move the cursor of a terminal. */
function cellText(cell: TableCell, lengthMax: number): string {
  if (cell === null) return '-';
  const text = escapeUnseen(String(cell));
  return text.length > lengthMax ? `${text.slice(0, lengthMax - 1)}…` : text;
}

/** Draws a table, with shorter cells if it does not fit the terminal. Lines that are still too long wrap. */
export function table(
  head: readonly string[],
  rows: readonly (readonly TableCell[])[],
  width = process.stdout.isTTY ? process.stdout.columns : Infinity,
): string {
  let drawn = '';
  for (const lengthMax of CELL_LENGTHS) {
    drawn = tableOf(head, rows, lengthMax);
    if (drawn.split('\n').every((line) => line.length <= width)) break;
  }
  return drawn;
}

/** Draws a table without borders. Numeric columns are right-aligned. */
export function tableOf(
  head: readonly string[],
  rows: readonly (readonly TableCell[])[],
  lengthMax: number,
): string {
  const edges = ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left'];
  const others = ['bottom-right', 'left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid'];
  const drawn = new Table({
    head: head.map((name) => name.toUpperCase()),
    chars: Object.fromEntries([...edges, ...others, 'middle'].map((name) => [name, ''])),
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2 },
    colAligns: head.map((_name, column) =>
      rows.length > 0 && rows.every((row) => typeof row[column] === 'number') ? 'right' : 'left',
    ),
  });
  const lengthOf = (column: number): number =>
    column === 0 ? Math.max(lengthMax, NAME_LENGTH_MAX) : lengthMax;
  drawn.push(...rows.map((row) => row.map((cell, column) => cellText(cell, lengthOf(column)))));
  return drawn.toString().replace(/ +$/gm, '');
}

/** Prints the response as JSON for scripts, or the text for people. */
export function show(output: Output, answer: unknown, text: () => string): void {
  output.out(output.isJson ? escapeLines(JSON.stringify(answer, null, 2)) : text());
}

/** Escapes control characters within each line. It does not change JSON, where line ends occur only between strings. */
export const escapeLines = (text: string): string => text.split('\n').map(escapeUnseen).join('\n');

/** Prints sentences of the server for people, each on its own line. */
export function noteAll(output: Output, sentences: readonly string[]): void {
  for (const sentence of sentences) output.note(`! ${escapeUnseen(sentence)}`);
}

/** Formats a duration with two significant digits and a unit. */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const units = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1_000, 's'],
  ] as const;
  for (const [unitMs, unit] of units) {
    if (ms >= unitMs) return `${Number((ms / unitMs).toPrecision(2))} ${unit}`;
  }
  return '';
}
