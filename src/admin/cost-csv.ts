// CSV as in RFC 4180, for spreadsheets.

type CsvCell = string | number | null;

/** Prefixes that make a spreadsheet evaluate a cell. Some spreadsheets skip white space before them. */
const FORMULA = /^[\s\uFEFF]*[=+\-@\t\r\n|%\uFF1D\uFF0B\uFF0D\uFF20]/;

/**
 * Invisible characters: controls, changes of direction, and zero-width characters that make two names look alike.
 * Joiners stay where emoji and scripts other than Latin need them.
 */
const UNSEEN =
  /(?!(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\uFE0F])\u200D\p{Extended_Pictographic}|(?<=[\p{L}\p{M}])(?<!\p{Script=Latin})[\u200C\u200D][\p{L}\p{M}])(?:[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115F\u1160\u3164\uFFA0]|\u034F|[\u{E0100}-\u{E01EF}])/gu;

/** Writes a table. Names come from callers, so none may be evaluated as a formula. */
export function toCsv(header: readonly string[], rows: readonly (readonly CsvCell[])[]): string {
  return [header, ...rows].map((cells) => `${cells.map(written).join(',')}\r\n`).join('');
}

function written(cell: CsvCell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return plain(cell);
  const seen = cell.replace(UNSEEN, escaped);
  const safe = FORMULA.test(cell) ? `'${seen}` : seen;
  return /[",]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Escapes a character as JSON does: `\u001b`, and two escapes beyond the first plane. */
function escaped(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}

/** Writes a number without an exponent, which some spreadsheets treat as text. */
function plain(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(9).replace(/\.?0+$/, '');
}
