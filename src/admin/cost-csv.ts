/** Writes tables as CSV by RFC 4180, for spreadsheets. */

type Cell = string | number | null;

/** Beginnings by which a spreadsheet takes a cell for a formula; a tab and a line break before one are skipped by some. */
const FORMULA = /^[\s\uFEFF]*[=+\-@\t\r\n|%\uFF1D\uFF0B\uFF0D\uFF20]/;

/** Invisible characters that change what a terminal or a spreadsheet shows: controls and changes of direction. */
const UNSEEN = /[\p{Cc}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;

/** Writes a table. Names are what callers wrote, so none may be a formula where somebody opens it. */
export function toCsv(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [header, ...rows].map((cells) => `${cells.map(written).join(',')}\r\n`).join('');
}

function written(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return plain(cell);
  const seen = cell.replace(UNSEEN, escaped);
  const safe = FORMULA.test(cell) ? `'${seen}` : seen;
  return /[",]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Escapes a character as JSON does: `\u001b`. */
function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Writes a number without an exponent, which spreadsheets may take for text. */
function plain(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(9).replace(/\.?0+$/, '');
}
