// Gateway keys in the fields of forms: found at any chunking, before a byte of the field may have gone out.
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { createJsonModelScan } from '../../../../src/upstream/body/json-model-scan.ts';
import {
  isForm,
  KeyedScan,
  keyScanFor,
  type KeyFound,
} from '../../../../src/upstream/body/form-keys.ts';
import { cutsOf, encode } from './feed.ts';

const KEY = 'hg_gateway-key-0815';
const OWN = 'chosen-by-the-operator';
const MULTIPART = 'multipart/form-data; boundary=B';
const URLENCODED = 'application/x-www-form-urlencoded';

const part = (headers: string, content: string, eol = '\r\n'): string =>
  ['--B', headers, '', content, ''].join(eol);
const field = (name: string, content: string, eol?: string): string =>
  part(`Content-Disposition: form-data; name="${name}"`, content, eol);
const file = (content: string): string =>
  part('Content-Disposition: form-data; name="file"; filename="a.txt"', content);
const END = '--B--\r\n';

interface FormKeysSeen {
  readonly found: KeyFound | null;
  /** How many bytes might have gone out before it was. */
  readonly outBytes: number;
}

/** Scans the form, cut at the given positions, and lets go of what is decided. */
function look(type: string, text: string, cuts: readonly number[] = []): FormKeysSeen {
  const scan = keyScanFor(type, OWN);
  if (scan === null) throw new Error(`${type} is no form`);
  const bytes = encode(text);
  const borders = [...cuts, bytes.length].toSorted((a, b) => a - b);
  let at = 0;
  let outBytes = 0;
  for (const border of borders) {
    const found = scan.push(bytes.subarray(at, border));
    if (found !== null) return { found, outBytes };
    at = border;
    outBytes = Math.max(outBytes, at - scan.undecidedBytes);
  }
  return { found: scan.end(), outBytes };
}

const HELD: [string, string, string | null][] = [
  [MULTIPART, field('model', 'm') + field('api_key', KEY) + file('x') + END, 'api_key'],
  [MULTIPART, file('x\n--C\r\n') + field('key', KEY) + END, 'key'],
  [MULTIPART, field('key', `  Bearer ${KEY}\t`) + END, 'key'],
  [MULTIPART, field('key', OWN) + END, 'key'],
  [MULTIPART, field('key', KEY, '\n') + END, 'key'],
  [MULTIPART, `preamble\r\n${field('key', KEY)}`, 'key'],
  [MULTIPART, field('a', '') + field('key', KEY), 'key'],
  [MULTIPART, `${field('a', 'b\r\n--Bc')}${field('key', KEY)}${END}`, 'key'],
  [MULTIPART, part('X: y\r\ncontent-disposition: form-data;\r\n name=key', KEY) + END, 'key'],
  [MULTIPART, part('', KEY) + END, ''],
  [MULTIPART, field(KEY, 'x') + END, null],
  [MULTIPART, field('key', KEY + 'x'.repeat(4_000)) + END, 'key'],
  [URLENCODED, `a=b&token=${KEY}`, 'token'],
  [URLENCODED, `token=%68g_%67ateway&a=b`, 'token'],
  [URLENCODED, `token=+Bearer+${KEY}`, 'token'],
  [URLENCODED, `token=${OWN}&a=b`, 'token'],
  [URLENCODED, `api%5Fkey=${KEY}`, 'api_key'],
  [URLENCODED, `a=${'x'.repeat(9_000)}&token=${KEY}`, 'token'],
  [URLENCODED, KEY, null],
  [URLENCODED, `a=b;token=${KEY}`, 'token'],
  [`${URLENCODED}, text/plain`, `token=${KEY}`, 'token'],
  [`text/plain, ${URLENCODED}`, `token=${KEY}`, 'token'],
  [`${URLENCODED} x`, `token=${KEY}`, 'token'],
  [`${MULTIPART}, text/plain`, field('key', KEY) + END, 'key'],
  [`text/plain, ${MULTIPART}`, field('key', KEY) + END, 'key'],
];

const OTHER_METHODS: [string, string, string][] = [
  [URLENCODED, '_method=DELETE', '_method'],
  [URLENCODED, 'a=1;_method=DELETE', '_method'],
  [URLENCODED, '_method%00x=DELETE', '_method\0x'],
  [URLENCODED, '%24httpMethod=DELETE', '$httpMethod'],
  [`${URLENCODED}, text/plain`, '_method=DELETE', '_method'],
  [MULTIPART, field('_method', 'DELETE') + END, '_method'],
  [
    MULTIPART,
    part("Content-Disposition: form-data; name*=utf-8''%5Fmethod", 'DELETE') + END,
    '_method',
  ],
  [
    MULTIPART,
    part(`Content-Disposition: form-data; name="a"; name*=UTF-8'en'_method`, 'DELETE') + END,
    '_method',
  ],
];

test.each(OTHER_METHODS)(
  'finds the name of another method, wherever it is cut: %s %j',
  (type, text, name) => {
    for (const cuts of cutsOf(encode(text).length)) {
      expect(look(type, text, cuts).found).toEqual({ field: name, isMethod: true });
    }
  },
);

const INNOCENT: [string, string][] = [
  [MULTIPART, field('prompt', `keys begin with hg_, as ${KEY}`) + END],
  [MULTIPART, field('prompt', 'hg_ is how they begin') + END],
  [MULTIPART, field('language', 'en') + file(KEY) + END],
  [MULTIPART, file(`\r\n\r\n${KEY}\r\n`) + field('a', 'xhg_b') + END],
  [MULTIPART, field('a', `${'x'.repeat(5_000)}\r\n${KEY}`) + END],
  [MULTIPART, `${file('x')}${END}${KEY}`],
  [MULTIPART, KEY],
  [URLENCODED, `prompt=my+${KEY}&a=`],
  [URLENCODED, `a=b=${KEY}`],
  [URLENCODED, ''],
];

describe('a gateway key in a form', () => {
  it.each(HELD)('is found, however it is cut: %s, no. %#', (type, text, name) => {
    for (const cuts of cutsOf(Math.min(text.length, 200))) {
      expect(look(type, text, cuts).found).toEqual({ field: name });
    }
  });

  it.each(INNOCENT)('is nothing else: %s, no. %#', (type, text) => {
    for (const cuts of cutsOf(Math.min(text.length, 200))) {
      expect(look(type, text, cuts).found).toBeNull();
    }
  });

  it('never goes out in part', () => {
    const value = fc.string({ maxLength: 40 }).map((text) => text.replaceAll(/[\r\n&]/g, ''));
    const cut = fc.array(fc.nat(2_000), { maxLength: 60 });
    const fields = fc.array(value, { maxLength: 5 });
    fc.assert(
      fc.property(fields, cut, fc.constantFrom(MULTIPART, URLENCODED), (before, cuts, type) => {
        const isMultipart = type === MULTIPART;
        const values = before.map((text) => encodeURIComponent(text.toWellFormed()));
        const head = isMultipart
          ? values.map((text) => field('a', text) + file(text)).join('')
          : values.map((text) => `a=${text}&`).join('');
        const tail = isMultipart ? field('key', KEY) + END : `key=${KEY}&b=c`;
        const text = head + tail;
        const at = cuts.filter((position) => position < text.length);
        const { found, outBytes } = look(type, text, at);
        expect(found).toEqual({ field: 'key' });
        expect(outBytes).toBeLessThanOrEqual(text.indexOf(KEY));
      }),
    );
  });

  it('holds little back: never more than the headers and the longest value of a part', () => {
    const mostOf = (type: string, text: string): number => {
      const scan = keyScanFor(type, OWN);
      let most = 0;
      for (const byte of encode(text)) {
        scan?.push(Uint8Array.of(byte));
        most = Math.max(most, scan?.undecidedBytes ?? 0);
      }
      return most;
    };
    const long = field('a', 'x'.repeat(20_000));
    expect(mostOf(MULTIPART, long + file(long))).toBeLessThan(2_048);
    expect(mostOf(MULTIPART, `--B\r\n${'h'.repeat(20_000)}`)).toBeLessThanOrEqual(8_192);
    const pair = `${'n'.repeat(9_000)}=${'v'.repeat(9_000)}`;
    expect(mostOf(URLENCODED, pair)).toBeLessThan(8_192);
  });
});

test.each<[string, boolean]>([
  ['application/json', false],
  ['', false],
  ['text/plain', false],
  ['multipart/form-data;boundary="B"', true],
  [' Multipart/Form-Data ; boundary=B', true],
  ['application/x-www-form-urlencoded; charset=utf-8', true],
])('%j is a form: %j', (type, expected) => {
  expect(isForm(type)).toBe(expected);
  expect(keyScanFor(type, null) !== null).toBe(expected);
});

describe('beside the model', () => {
  const scanOf = (): KeyedScan => {
    const keys = keyScanFor(URLENCODED, null);
    if (keys === null) throw new Error('no form');
    return new KeyedScan(createJsonModelScan(), keys);
  };

  it('both are looked for, and the key goes before the model', () => {
    const scan = scanOf();
    expect(scan.push(encode('{"model":"m"}'))).toMatchObject({ kind: 'found', model: 'm' });
    expect(scan.goesOn).toBe(true);
    expect(scan.push(encode(`&k=${KEY}&`))).toEqual({ kind: 'key', field: 'k' });
    expect(scan.goesOn).toBe(false);
    expect(scan.end()).toEqual({ kind: 'key', field: 'k' });
  });

  it('a form without a key keeps its model', () => {
    const scan = scanOf();
    scan.push(encode('{"model":"m"}'));
    expect(scan.end()).toMatchObject({ kind: 'found', model: 'm' });
  });
});
