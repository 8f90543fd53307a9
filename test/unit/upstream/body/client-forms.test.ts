// Forms as real clients write them, where the model counts: parameters of headers are read by their grammar.
import { describe, expect, it, test } from 'vitest';
import { certainForm } from '../../../../src/upstream/body/content-type.ts';
import { keyScanFor } from '../../../../src/upstream/body/form-keys.ts';
import type { ScanState } from '../../../../src/upstream/body/model-scan.ts';
import { createMultipartModelScan } from '../../../../src/upstream/body/multipart-scan.ts';
import { bytesOf, CLIENT_FORMS } from '../../../support/client-forms.ts';
import { cutsOf, encode, scan } from './feed.ts';

/** Scans a form where its model counts. */
function thorough(
  type: string,
  bytes: Uint8Array,
  cuts: readonly number[] = [],
): ScanState | string {
  const form = certainForm(type);
  if (form.kind !== 'form') return form.kind === 'hidden' ? form.why : form.kind;
  return scan(createMultipartModelScan(form.boundary, 'thorough', form.stem), bytes, cuts);
}

const FOUND = { kind: 'found', model: 'whisper-1' };

const formOf = (
  boundary: string,
  ...parts: readonly [headers: string, content: string][]
): string =>
  parts.map(([headers, content]) => `--${boundary}\r\n${headers}\r\n\r\n${content}\r\n`).join('') +
  `--${boundary}--\r\n`;

const MODEL = ['Content-Disposition: form-data; name="model"', 'whisper-1'] as const;
const of = (headers: string, content = 'x'): [string, string] => [headers, content];

describe('a form of', () => {
  test.each(CLIENT_FORMS)('$client ($source) is read', (form) => {
    const bytes = bytesOf(form);
    for (const cuts of cutsOf(bytes.length)) {
      expect(thorough(form.type, bytes, cuts)).toMatchObject(FOUND);
    }
  });

  test.each(CLIENT_FORMS)('$client is searched for gateway keys', (form) => {
    const text = new TextDecoder().decode(bytesOf(form)).replace('whisper-1', 'hg_gateway-key');
    const keys = keyScanFor(form.type, null);
    expect(keys?.push(encode(text)) ?? keys?.end()).toEqual({ field: 'model' });
  });
});

const BOUNDARIES = [
  "'()+_,-./:=?",
  "a'()+_,-./:=? b",
  '(a)',
  'B',
  'b'.repeat(70),
  '=_Part_1_2.3=',
  'a b c',
  'a, b',
  'boundary',
  'x-boundary=y',
  '----boundary----boundary----',
  'Name=Model',
];

describe('a boundary', () => {
  test.each(BOUNDARIES)('may be %j', (boundary) => {
    const bytes = encode(
      formOf(boundary, of('Content-Disposition: form-data; name=x'), [...MODEL]),
    );
    for (const cuts of cutsOf(bytes.length)) {
      expect(thorough(`multipart/form-data; boundary="${boundary}"`, bytes, cuts)).toMatchObject(
        FOUND,
      );
    }
  });

  test.each([
    ['A,B', 'A'],
    ['A B', 'A'],
    ['A(B)', 'A'],
    ['A', 'B'],
  ])('that some parsers cut short delimits nothing else: %j, %j', (boundary, other) => {
    const type = `multipart/form-data; boundary="${boundary}"; x="boundary=${other}"`;
    const hidden = formOf(other, ['Content-Disposition: form-data; name="model"', 'other']);
    const bytes = encode(
      formOf(boundary, [...MODEL], of('Content-Disposition: form-data; name=x', `\r\n${hidden}`)),
    );
    for (const cuts of cutsOf(bytes.length)) {
      expect(thorough(type, bytes, cuts)).toMatchObject({ kind: 'unreadable' });
    }
  });
});

/** Each is read like the plain type. */
const TYPES = [
  'Multipart/Form-Data;BOUNDARY=B',
  'multipart/form-data ; boundary=B',
  'multipart/form-data;\tboundary="B" ; charset="utf-8"',
  'multipart/form-data; boundary = B',
  'multipart/form-data; boundary=B;',
  'multipart/form-data; charset=ISO-8859-1; boundary=B',
  'multipart/form-data; charset=windows-1252; boundary=B',
  'multipart/form-data; profile="boundary"; boundary=B',
  'multipart/form-data; profile="a boundary; charset=utf-16, name=model"; boundary=B',
  'multipart/form-data; profile="say \\"boundary\\", twice"; boundary=B',
  'multipart/form-data; x-boundary=C; boundary=B',
  'multipart/form-data; boundary=B; type="application/json"; start="<a,b>"',
];

describe('a content type', () => {
  test.each(TYPES)('is parsed by its grammar: %s', (type) => {
    expect(thorough(type, encode(formOf('B', [...MODEL])))).toMatchObject(FOUND);
  });

  test.each([
    'application/json; profile="https://example.com/a,b"',
    'application/json; profile="charset=utf-16"',
    'application/json;charset=utf-8;',
    'application/json; utf-8',
    'application/json; charset=windows-1252',
    'application/vnd.api+json; ext="https://jsonapi.org/ext/version, boundary"',
  ])('of JSON is parsed by its grammar: %s', (type) => {
    expect(certainForm(type)).toEqual({ kind: 'json' });
  });

  test.each([
    ['multipart/form-data; boundary=A; boundary=B', 'its content type names several boundaries'],
    ['multipart/form-data; boundary=A; Boundary="B"', 'its content type names several boundaries'],
    [
      "multipart/form-data; boundary=B; boundary*=utf-8''C",
      'its content type names several boundaries',
    ],
    [
      'multipart/form-data; boundary=B, multipart/form-data; boundary=C',
      'it has several content types',
    ],
    ['multipart/form-data; boundary=B, application/json', 'it has several content types'],
    ['application/json; x=", application/x-www-form-urlencoded"', 'it has several content types'],
    ['application/json; x=", multipart/form-data"', 'it has several content types'],
    ['multipart/form-data; boundary="B C" D', 'its boundary can be read in several ways'],
    ['multipart/form-data; boundary="B\\C"', 'its boundary can be read in several ways'],
    ['multipart/form-data; boundary="B "', 'its boundary can be read in several ways'],
    ['multipart/form-data; boundary=B; charset=utf-16', 'its charset is not UTF-8'],
    ['multipart/form-data; boundary=B charset=utf-16', 'its charset is not UTF-8'],
  ])('that parsers read in several ways is rejected: %s', (type, why) => {
    expect(certainForm(type)).toEqual({ kind: 'hidden', why });
  });
});

/** Headers of a part beside the model. */
const OTHER_PARTS = [
  'Content-Disposition: form-data; name=file; filename=a(1).wav',
  'Content-Disposition: form-data; name="file"; filename="name=model.wav"',
  'Content-Disposition: form-data; name="file"; filename="a; name=model; b.wav"',
  'Content-Disposition: form-data; name="file"; filename="a \\"b\\"; name=\\"c\\".wav"',
  'Content-Disposition: form-data; name="file"; filename="C:\\\\music\\\\a.wav"',
  'Content-Disposition: form-data; name=file; filename="a.wav"; filename*=UTF-8\'\'a%20b.wav',
  'Content-Disposition: form-data; filename="a.wav"; name="file"',
  'content-disposition:FORM-DATA ;NAME = "file" ; FileName="a.wav";size=1',
  'Content-Disposition: form-data;\r\n\tname="file";\r\n filename="a.wav"\r\nContent-Type:\r\n audio/wav',
  'Content-Disposition: form-data; name="a;b, c=d"',
  'Content-Disposition: form-data; name="say \\"hi\\""',
  'Content-Disposition: form-data; name="charset"',
  'Content-Disposition: form-data; name="x"; name*=utf-8\'\'x',
  'Content-Type: audio/wav; note="multipart/mixed; charset=utf-16"\r\nContent-Disposition: form-data; name="file"; filename="a.wav"',
  'Content-Type: audio/wav; name="a.wav"\r\nContent-Disposition: form-data; name="file"; filename="a.wav"',
  'Content-Disposition: form-data; name="include[]"\r\nContent-Type: text/plain;charset=UTF-8',
];

const FORM = 'multipart/form-data; boundary=B';

describe('a part', () => {
  test.each(OTHER_PARTS)('beside the model is parsed by its grammar: %j', (headers) => {
    const orders = [
      [of(headers), of(...MODEL)],
      [of(...MODEL), of(headers)],
    ];
    for (const bytes of orders.map((parts) => encode(formOf('B', ...parts)))) {
      for (const cuts of cutsOf(bytes.length)) {
        expect(thorough(FORM, bytes, cuts)).toMatchObject(FOUND);
      }
    }
  });

  test.each([
    'content-disposition: Form-Data ; Name = model',
    'Content-Disposition: form-data;\r\n name="model"',
    'Content-Disposition: form-data; name="model";',
    "Content-Disposition: form-data; name=model; name*=utf-8''model",
    'Content-Disposition: form-data; name="model"; size=9',
    'Content-Disposition: form-data; name="model"\r\nContent-Type: text/plain; note="charset=utf-16"',
  ])('is the model by its grammar: %j', (headers) => {
    expect(thorough(FORM, encode(formOf('B', of(headers, 'whisper-1'))))).toMatchObject(FOUND);
  });

  test.each([
    'Content-Disposition: form-data; name="%6dodel"',
    'Content-Disposition: form-data; name="mo\\del"',
    'Content-Disposition: form-data; name=" model"',
    'Content-Disposition: form-data; name="x"; name*=utf-8\'\'%6Dodel',
    'Content-Disposition: form-data; name="model"; name*=utf-8\'\'x',
    'Content-Disposition: form-data; name="x"; name*0=mo; name*1=del',
    "Content-Disposition: form-data; name=x; name*=utf-7''+AG0-odel",
    'Content-Disposition: form-data; name="=?utf-8?B?bW9kZWw=?="',
    'Content-Disposition: form-data; name="mo\r\n del"',
    'Content-Disposition: form-data; name="x\\"; name=\\"model"',
    'Content-Disposition: form-data; filename="x\\"; name=model; y=\\"z"; name="q"',
    'Content-Disposition: form-data; name="x"\r\nX: y\r\n Content-Disposition: form-data; name="model"',
    'Content-Type: text/plain; name="model"\r\nContent-Disposition: form-data; name="x"',
    'Content-Type: text/plain, multipart/mixed; boundary=C\r\nContent-Disposition: form-data; name="x"',
    'Content-Disposition: form-data; name="model\u0000x"',
  ])('that some parsers read as the model is not guessed: %j', (headers) => {
    expect(thorough(FORM, encode(formOf('B', of(headers), [...MODEL])))).toMatchObject({
      kind: 'unreadable',
    });
  });

  it('may name its file in another encoding than UTF-8', () => {
    const text = formOf(
      'B',
      of('Content-Disposition: form-data; name="file"; filename="\u00dc.wav"'),
      [...MODEL],
    );
    expect(
      thorough(
        FORM,
        Uint8Array.from(text, (each) => each.charCodeAt(0)),
      ),
    ).toMatchObject(FOUND);
  });

  it('with the model is counted, whichever way its name is written', () => {
    for (const headers of [
      'Content-Disposition: form-data; name=model',
      'content-disposition: form-data;\r\n name = "Model"',
      'Content-Disposition: form-data; name="model"; filename="a"',
    ]) {
      const bytes = encode(formOf('B', [...MODEL], of(headers, 'other')));
      expect(thorough(FORM, bytes)).toEqual({ kind: 'twice' });
    }
  });
});
