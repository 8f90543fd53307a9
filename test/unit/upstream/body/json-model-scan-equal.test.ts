// The search for the model as a visitor of the walk, against the scanner of its own that it replaces.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import * as walked from '../../../../src/upstream/body/json-model-scan.ts';
import type { ModelScan, ScanState } from '../../../../src/upstream/body/model-scan.ts';
import * as scanned from '../../../../src/upstream/json/json-scan.ts';
import { encode } from './feed.ts';

const RUNS = Number(process.env['RUNS'] ?? 2_000);

type Make = (from: typeof walked | typeof scanned) => ModelScan;

const KINDS: Record<string, Make> = {
  first: (from) => from.createJsonModelScan(),
  'first, with stream': (from) => from.createJsonStreamScan(),
  thorough: (from) => from.createJsonModelScan('thorough'),
  'thorough, with stream': (from) => from.createJsonStreamScan('thorough'),
};

/** Whether both say the same, after each piece and at the end. */
function areEqual(was: ModelScan, is: ModelScan, cut: readonly Uint8Array[]): boolean {
  for (const piece of cut) if (!isSame(was.push(piece), is.push(piece), was, is)) return false;
  return isSame(was.end(), is.end(), was, is) && isSame(was.end(), is.end(), was, is);
}

function isSame(before: ScanState, now: ScanState, was: ModelScan, is: ModelScan): boolean {
  return (
    (before === now || JSON.stringify(before) === JSON.stringify(now)) &&
    was.isStream === is.isStream &&
    was.goesOn === is.goesOn &&
    was.undecidedBytes === is.undecidedBytes
  );
}

/** All that a scan says. */
function told(scan: ModelScan, cut: readonly Uint8Array[]): unknown[] {
  const after = cut.map((piece) => [scan.push(piece), scan.isStream, scan.goesOn]);
  return [...after, scan.end(), scan.isStream, scan.goesOn];
}

function pieces(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const borders = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
  return borders.slice(1).map((to, index) => bytes.subarray(borders[index], to));
}

function expectEqual(bytes: Uint8Array, cuts: readonly number[]): void {
  const cut = pieces(bytes, cuts);
  for (const [kind, make] of Object.entries(KINDS)) {
    if (areEqual(make(scanned), make(walked), cut)) continue;
    const text = JSON.stringify(new TextDecoder().decode(bytes));
    expect(told(make(walked), cut), `${kind}: ${text} cut at ${cuts.join()}`).toEqual(
      told(make(scanned), cut),
    );
    throw new Error(`${kind}: ${text} cut at ${cuts.join()}`);
  }
}

const TOKENS = [
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  ' ',
  '\n',
  '\r',
  '\t',
  '\0',
  '\u000b',
  '\u001f',
  '/',
  '/*"*/',
  "'",
  '#',
  '`',
  '_',

  '"model"',
  '"stream"',
  '"Model"',
  '"models"',
  '"fallbacks"',
  '"model[0]"',
  '"mod\\u0065l"',
  '"\\u0073tream"',
  '"x"',

  '"\\u006d\\u006f\\u0064\\u0065\\u006c"',
  '"\ufeffmodel"',
  '"\ufeffmod\\u0065l"',
  '"m\u00f6del"',
  '"mod\\el"',
  '"mod\\u00"',

  'true',
  'false',
  'null',
  'NaN',
  '1',
  '-2.5e+3',
  'tru',
  '+.',
  't',
  'n',
  'é',
  '😀',
  '\ufeff',
  '"a,b"',
  '"gpt-4o"',
  '""',

  '"\\""',
  '"\\\\"',
  '"\\\\\\""',
  '"a\\/b"',
  '"\n"',
  '"\\ud83d\\ude00"',
  '{"model":"x"}',
  '[{"model":"y"}]',
  '{}',
  '[]',
  '[1,',
];

const token = fc.constantFrom(...TOKENS);
const member = fc
  .tuple(
    fc.oneof(
      fc.constantFrom(
        '"model"',
        '"model"',
        '"stream"',
        '"Model"',
        '"models"',
        '"mod\\u0065l"',
        '"a"',
        '"messages"',
      ),
      fc.string({ unit: 'binary', maxLength: 8 }).map((text) => JSON.stringify(text)),
    ),
    fc.oneof(
      fc.constantFrom(
        '"gpt-4o"',
        '"a,b"',
        'true',
        'false',
        'null',
        '1',
        '"a\\/b"',
        '"\\u0061"',
        '{"model":"x"}',
        '[]',
      ),
      fc.string({ unit: 'binary', maxLength: 12 }).map((text) => JSON.stringify(text)),
      fc.jsonValue({ maxDepth: 3 }).map((any) => JSON.stringify(any)),
      token,
    ),
    fc.constantFrom('', '', '', ' ', '\n\t', '\r\n', '\u000b', 'x'),
  )
  .map(([key, value, space]) => `${space}${key}${space}:${space}${value}${space}`);
const object = fc
  .tuple(
    fc.constantFrom('', '', '', ' ', '\ufeff', '\ufeff\ufeff', '\n'),
    fc.array(member, { maxLength: 6 }),
    fc.constantFrom('}', '}', '}', '} ', '}\n', '}x', '}{}', ']', ',}', ''),
  )
  .map(([before, members, end]) => `${before}{${members.join(',')}${end}`);
const bites = fc.array(fc.tuple(fc.nat(), fc.nat(3), token), { maxLength: 3 });
const bitten = fc.tuple(object, bites).map(([text, all]) => {
  let now = text;
  for (const [at, length, put] of all) {
    const from = at % (now.length + 1);
    now = now.slice(0, from) + put + now.slice(from + length);
  }
  return now;
});
const soup = fc.array(token, { maxLength: 20 }).map((all) => all.join(''));
const inObject = soup.map((text) => `{${text}`);

const utf16 = (text: string, big: boolean): Uint8Array =>
  Uint8Array.from({ length: text.length * 2 }, (_, at) => {
    const unit = text.charCodeAt(at >> 1);
    return (at % 2 === 0) === big ? unit >> 8 : unit & 0xff;
  });

const bytesOf = fc.oneof(
  { weight: 4, arbitrary: object.map(encode) },
  { weight: 4, arbitrary: bitten.map(encode) },
  { weight: 2, arbitrary: soup.map(encode) },
  { weight: 4, arbitrary: inObject.map(encode) },
  fc.tuple(object, fc.boolean()).map(([text, big]) => utf16(text, big)),
  fc.uint8Array({ maxLength: 40 }),
  // Any byte in place of another, so that UTF-8 breaks too.
  fc.tuple(object, fc.nat(), fc.nat(255)).map(([text, at, byte]) => {
    const bytes = encode(text);
    bytes[at % (bytes.length || 1)] = byte;
    return bytes;
  }),
  fc.tuple(object, fc.nat()).map(([text, at]) => encode(text).subarray(0, at % (text.length + 1))),
);

test('both say the same of any bytes, whole and cut at every byte', () => {
  fc.assert(
    fc.property(bytesOf, fc.array(fc.nat(), { maxLength: 6 }), (bytes, cuts) => {
      expectEqual(bytes, []);
      for (let at = 0; at <= bytes.length; at += 1) expectEqual(bytes, [at]);
      expectEqual(
        bytes,
        Array.from({ length: bytes.length }, (_, at) => at),
      );
      expectEqual(
        bytes,
        cuts.map((at) => at % (bytes.length + 1)),
      );
    }),
    { numRuns: RUNS },
  );
}, 3_600_000);

test('both say the same of what is long or deep', () => {
  const length = fc.oneof(
    fc.constantFrom(0, 23, 24, 25, 47, 48, 49, 63, 64, 65, 1_022, 1_023, 1_024, 1_025, 1_026),
    fc.nat(3_000),
  );
  const filler = fc.constantFrom(
    'k',
    '\\\\',
    '\\"',
    '\\u006d',
    'ö',
    '\\',
    '"',
    '{',
    '[',
    '[{',
    '"}',
    ']',
  );
  const long = fc.tuple(
    fc.constantFrom(
      ['{"', '":1,"model":"m"}'],
      ['{"model":"', '","stream":true}'],
      ['{"a":"', '","model":"m"}'],
      ['{"a":[', '],"model":"m"}'],
      ['{"a":', ',"model":"m"}'],
      ['{"model', '":"m"}'],
      ['{"stream":tr', ',"model":"m"}'],
      [' ', '{"model":"m"}'],
    ),
    filler,
    length,
    fc.array(fc.nat(), { maxLength: 4 }),
  );
  fc.assert(
    fc.property(long, ([[before = '', after = ''], fill, count, cuts]) => {
      const bytes = encode(before + fill.repeat(count) + after);
      expectEqual(bytes, []);
      expectEqual(
        bytes,
        cuts.map((at) => at % (bytes.length + 1)),
      );
      expectEqual(
        bytes,
        Array.from({ length: bytes.length }, (_, at) => at),
      );
    }),
    { numRuns: Math.ceil(RUNS / 10) },
  );
});
