// Forms whose model counts: only those are taken that every parser takes apart alike.
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { certainForm } from '../../../../src/upstream/body/content-type.ts';
import { createMultipartModelScan } from '../../../../src/upstream/body/multipart-scan.ts';
import { cutsOf, encode, rawOf, scan } from './feed.ts';

const part = (headers: string, content: string): string =>
  `--B\r\n${headers}\r\n\r\n${content}\r\n`;
const field = (name: string, content: string): string =>
  part(`Content-Disposition: form-data; name="${name}"`, content);
const file = (name: string, content: string): string =>
  part(
    `Content-Disposition: form-data; name="${name}"; filename="a.wav"\r\nContent-Type: audio/wav`,
    content,
  );
const MODEL = field('model', 'whisper-1');
const OTHER = field('model', 'other');
const END = '--B--\r\n';

const READABLE: [string, string | null][] = [
  [MODEL + END, 'whisper-1'],
  [`${MODEL}--B--`, 'whisper-1'],
  [field('language', 'en') + MODEL + file('file', 'x\r\n--b\n\r\n-B') + END, 'whisper-1'],
  [part('content-disposition:form-data;NAME=model', 'm') + END, 'm'],
  [part('X: y\r\nContent-Disposition: form-data ; name=model ', 'm') + END, 'm'],
  [
    part('Content-Transfer-Encoding: 8bit\r\nContent-Disposition: form-data; name=model', 'm') +
      END,
    'm',
  ],
  [
    part(
      'Content-Disposition: form-data; name="model"\r\nContent-Type: text/plain; charset=UTF-8',
      'm',
    ) + END,
    'm',
  ],
  [part("Content-Disposition: form-data; name=file; filename*=utf-8''%e2", 'x') + END, null],
  [field('language', 'en') + END, null],
  ['--B--', null],
];

const TWICE = [
  MODEL + OTHER + END,
  MODEL + field('Model', 'other') + END,
  MODEL + file('model', 'other') + END,
  MODEL + part('Content-Disposition: form-data;\r\n name="model"', 'other') + END,
];

const UNREADABLE = [
  file('model', 'other') + END,
  `${part('Content-Disposition: form-data; name="model"; filename=""', 'other')}${END}`,
  field('MODEL', 'other') + END,
  field('model[]', 'other') + END,
  field('models', 'other') + MODEL + END,
  field('model', 'a,b') + END,
  `preamble\r\n${MODEL}${END}`,
  `\r\n${MODEL}${END}`,
  `${MODEL}${END}${OTHER}`,
  MODEL,
  MODEL + part('Content-Disposition: form-data; name="x"; name="model"', 'other') + END,
  MODEL + part("Content-Disposition: form-data; name*=utf-8''model", 'other') + END,
  MODEL + part('Content-Disposition: form-data; name*0=mo; name*1=del', 'other') + END,
  MODEL + part('Content-Disposition: form-data; name= "x;name=model"', 'other') + END,
  MODEL + part('Content-Disposition: form-data; name="x;name=model"', 'other') + END,
  MODEL + part('Content-Disposition: form-data; x="; name=model"; name="x"', 'other') + END,
  MODEL + part('Content-Disposition: form-data; name=model:x', 'other') + END,
  MODEL + part('Content-Disposition: form-data; name=(x)model', 'other') + END,
  MODEL + part('Content-Disposition: form-data; name="=?utf-8?q?model?="', 'other') + END,
  MODEL + part('Content-Disposition: attachment; name="model"', 'other') + END,
  `${part('Content-Disposition: form-data; name="model"\r\nContent-Type: multipart/mixed; boundary=C', 'other')}${END}`,
  // An empty line that is the end of the headers, and of the part for some.
  `${MODEL}--B\r\nContent-Disposition: form-data; name="x"\r\n\r\n${field('y', '')}${END}`,
  MODEL + part('Content-Disposition : form-data; name="model"', 'other') + END,
  MODEL + part('Content-Disposition: form-data; name="a\\"; name="model"', 'other') + END,
  `${MODEL}${part('Content-Disposition: form-data; name="x"\r\nContent-Disposition: form-data; name="model"', 'other')}${END}`,
  MODEL + part('X: y\nContent-Disposition: form-data; name="model"', 'other') + END,
  MODEL + part('', 'other') + END,
  `${part('Content-Disposition: form-data; name="model"\r\nContent-Transfer-Encoding: quoted-printable', 'whisper=2d1')}${END}`,
  `${part('Content-Disposition: form-data; name="model"\r\nContent-Type: text/plain; charset=utf-16le', 'o\0')}${END}`,
  // A line that ends with one character ends a part for some.
  `${MODEL}${field('x', `\n${OTHER}y`)}${END}`,
  `${MODEL}${field('x', `\r${OTHER}y`)}${END}`,
  `${MODEL}--B \r\n${OTHER.slice(5)}${END}`,
  `${MODEL}${field('x', `\r\n--Bx\r\n${OTHER.slice(5)}`)}${END}`,
  `--B\n${MODEL.slice(5).replaceAll('\r\n', '\n')}--B--\n`,
  '{"model":"other"}',
  '',
];

const thorough = (text: string, cuts: readonly number[] = []) =>
  scan(createMultipartModelScan('B', 'thorough'), encode(text), cuts);

describe('a thorough scan of a form', () => {
  test.each(READABLE)('finds the one field wherever the body is cut: %j', (text, model) => {
    for (const cuts of cutsOf(encode(text).length)) {
      const state = thorough(text, cuts);
      expect(state).toMatchObject(model === null ? { kind: 'absent' } : { kind: 'found', model });
      expect(rawOf(state, encode(text))).toBe(model ?? '');
    }
  });

  test.each(TWICE)('says that there are two: %j', (text) => {
    for (const cuts of cutsOf(encode(text).length)) expect(thorough(text, cuts).kind).toBe('twice');
  });

  test.each(UNREADABLE)('does not guess: %j', (text) => {
    for (const cuts of cutsOf(encode(text).length)) {
      expect(thorough(text, cuts).kind).toBe('unreadable');
    }
  });

  it('finds what FormData writes, and never another model than its parser, whatever is done to it', async () => {
    const bite = fc.tuple(fc.nat(), fc.nat(4), fc.constantFrom(...BITES));
    const content = fc.array(fc.constantFrom(...BITES, 'x'), { maxLength: 6 });
    const fields = fc.array(fc.tuple(fc.constantFrom('file', 'x', 'model'), content), {
      maxLength: 3,
    });
    await fc.assert(
      fc.asyncProperty(fields, fc.array(bite, { maxLength: 2 }), async (all, bites) => {
        const form = new FormData();
        for (const [name, pieces] of all) form.append(name, pieces.join(''));
        const written = await new Response(form).text();
        const boundary = written.slice(2, written.indexOf('\r\n'));
        let text = written.replaceAll(boundary, 'B');
        for (const [at, length, put] of bites) {
          const from = at % (text.length + 1);
          text = text.slice(0, from) + put + text.slice(from + length);
        }
        const state = thorough(text);
        if (state.kind !== 'found' && state.kind !== 'absent') return;
        const headers = { 'content-type': 'multipart/form-data; boundary=B' };
        const parsed = await new Response(text, { headers }).formData().catch(() => null);
        if (parsed === null) return;
        expect(parsed.getAll('model')).toEqual(state.kind === 'found' ? [state.model] : []);
      }),
      { numRuns: 1_500 },
    );
  });

  it('passes a file of 20 MB, of whatever bytes, in time', () => {
    for (const byte of [0x0d, 0x0a, 0x2d, 0x41]) {
      const body = createMultipartModelScan('B', 'thorough');
      body.push(encode('--B\r\nContent-Disposition: form-data; name=f; filename=f\r\n\r\n'));
      body.push(new Uint8Array(20_000_000).fill(byte));
      expect(body.push(encode(`\r\n${MODEL}--B--`))).toMatchObject({ model: 'whisper-1' });
      expect(body.end()).toMatchObject({ model: 'whisper-1' });
    }
  });
});

const BITES = [
  '\r',
  '\n',
  '\r\n',
  '--',
  '--B',
  '\r\n--B\r\n',
  '\n--B\r\n',
  '--B--',
  'Content-Disposition: form-data; name="model"\r\n\r\n',
  'name="model"',
  '"',
  ';',
  '; filename=""',
];

describe('the content type of a body whose model counts', () => {
  test.each([
    ['', 'json'],
    ['application/json', 'json'],
    ['application/json; charset=utf-8', 'json'],
    ['Application/JSON ; Charset="UTF-8"', 'json'],
    ['application/vnd.api+json', 'json'],
    ['text/plain;charset=UTF-8', 'json'],
    ['application/json; charset=utf-16', 'hidden'],
    ['application/json; charset=utf-7', 'hidden'],
    ['application/json; charset=utf-8; charset=utf-7', 'hidden'],
    ["application/json; charset*=utf-8''utf-16", 'hidden'],
    ['application/json, multipart/form-data; boundary=B', 'hidden'],
    ['application/json; x=1, application/x-www-form-urlencoded', 'hidden'],
    ['application/x-www-form-urlencoded', 'hidden'],
    ['application/msgpack', 'hidden'],
    ['application/yaml', 'hidden'],
    ['multipart/mixed; boundary=B', 'hidden'],
    ['application/jsonp', 'hidden'],
    ['multipart/form-data; boundary=B', 'form'],
    ['multipart/form-data; charset=utf-8; boundary="B"', 'form'],
    ['multipart/form-data', 'hidden'],
    ['multipart/form-data; boundary="\\B"', 'hidden'],
    ['multipart/form-data; boundary="B', 'hidden'],
    ['multipart/form-data; boundary=B"', 'hidden'],
    ['multipart/form-data; boundary=B C', 'hidden'],
    ['multipart/form-data; boundary=B(C)', 'hidden'],
    ['multipart/form-data; boundary=<B>', 'hidden'],
    ['multipart/form-data; boundary=B:C', 'hidden'],
    ['multipart/form-data; boundary=B=', 'hidden'],
    ['multipart/form-data; boundary="B;C"', 'hidden'],
    ['multipart/form-data; boundary=A; boundary=B', 'hidden'],
    ['multipart/form-data; boundary=A; charset=utf-7', 'hidden'],
    ["multipart/form-data; boundary=A; boundary*=utf-8''B", 'hidden'],
    ['multipart/form-data; boundary=A, multipart/form-data; boundary=B', 'hidden'],
  ])('is taken as it will be upstream, or not at all: %s', (contentType, kind) => {
    expect(certainForm(contentType)).toMatchObject(
      kind === 'form' ? { kind, boundary: 'B' } : { kind },
    );
  });
});
