// CSV as spreadsheets open it: what callers wrote is text there, whatever it looks like.
import { describe, expect, it } from 'vitest';
import { toCsv } from '../../../src/admin/cost-csv.ts';

const cellOf = (text: string): string => toCsv([text], []).replace(/\r\n$/, '');

describe('a cell', () => {
  it.each([
    '=1+1',
    '+1',
    '-1+1',
    '@SUM(A1)',
    '\t=1',
    '\r=1',
    '  =1',
    '\u{FEFF}=1',
    '=HYPERLINK("http://x";"y")',
    '\u{FF1D}1',
    '|calc',
  ])('is no formula: %j', (text) => {
    const cell = cellOf(text);
    expect(cell.replace(/^"/, '').startsWith("'")).toBe(true);
    const seen = text.replace(
      /[\t\r\uFEFF]/g,
      (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    expect(cell).toContain(seen.replaceAll('"', '""'));
  });

  it('is quoted where it must be', () => {
    expect(cellOf('gpt-4o')).toBe('gpt-4o');
    expect(cellOf('a,b')).toBe('"a,b"');
    expect(cellOf('say "hi"')).toBe('"say ""hi"""');
    expect(cellOf(' x')).toBe('" x"');
  });

  it.each([
    ['two\nlines', 'two\\u000alines'],
    ['a\r\nb', 'a\\u000d\\u000ab'],
    ['nul\0', 'nul\\u0000'],
    ['\u001b[31mred', '\\u001b[31mred'],
    ['del\u007f', 'del\\u007f'],
    ['c1\u009b', 'c1\\u009b'],
    ['a\u2028b', 'a\\u2028b'],
    ['exe\u202egpj', 'exe\\u202egpj'],
    ['al\u200bice', 'al\\u200bice'],
    ['al\u200dice', 'al\\u200dice'],
    ['al\u200cice', 'al\\u200cice'],
    ['\u2060al\u00adice', '\\u2060al\\u00adice'],
    ['a\u{FEFF}', 'a\\ufeff'],
    ['a\u3164', 'a\\u3164'],
    ['a\u034fb', 'a\\u034fb'],
    ['a\u{E0061}', 'a\\udb40\\udc61'],
    ['a\u{E0100}', 'a\\udb40\\udd00'],
    ['1\u200d2', '1\\u200d2'],
  ])('has no invisible character: %j', (text, cell) => {
    expect(cellOf(text)).toBe(cell);
  });

  it('keeps letters of every script', () => {
    const text = 'Größe 東京 👩‍💻 👩🏽‍💻 ❤️‍🔥 می‌خواهم क्‍ष';
    expect(cellOf(text)).toBe(text);
  });

  it('holds numbers without an exponent, and nothing where there is none', () => {
    expect(toCsv(['a', 'b', 'c'], [[0.0000004, 1_200_000_000_000, null]])).toBe(
      'a,b,c\r\n0.0000004,1200000000000,\r\n',
    );
    expect(toCsv([], [[0.1 + 0.2]])).toBe('\r\n0.3\r\n');
    // Sums are as good as whole.
    expect(toCsv([], [[2.9999999999999996, 10.0000000001, 1e-12]])).toBe('\r\n3,10,0\r\n');
  });
});
