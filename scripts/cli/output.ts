import Table from 'cli-table3';
import { escapeUnseen } from '../serve/log-lines.ts';

/** Maximum length of a cell: callers name agents and models as they like. */
const CELL_LENGTH_MAX = 48;

type Cell = string | number | null;

/** Streams of a command: results to `out`, what is only for people to `note`. */
export interface Output {
  readonly isJson: boolean;
  out(text: string): void;
  note(text: string): void;
}

/** Writes a cell, without what would move the cursor of a terminal. */
function cellText(cell: Cell, lengthMax: number): string {
  if (cell === null) return '-';
  const text = escapeUnseen(String(cell));
  return text.length > lengthMax ? `${text.slice(0, lengthMax - 1)}…` : text;
}

/** Draws a table without lines; numbers stand to the right. */
export function table(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  lengthMax = CELL_LENGTH_MAX,
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
  drawn.push(...rows.map((row) => row.map((cell) => cellText(cell, lengthMax))));
  return drawn.toString().replace(/ +$/gm, '');
}

/** Writes the answer for scripts, or the text for people. */
export function show(output: Output, answer: unknown, text: () => string): void {
  output.out(output.isJson ? JSON.stringify(answer, null, 2) : text());
}

/** Writes sentences of the server for people, each on its line. */
export function noteAll(output: Output, sentences: readonly string[]): void {
  for (const sentence of sentences) output.note(`! ${escapeUnseen(sentence)}`);
}

/** Writes a length of time in two figures and a unit. */
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
