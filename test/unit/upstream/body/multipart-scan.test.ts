import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { multipartBoundary } from '../../../../src/upstream/body/content-type.ts';
import { createMultipartModelScan } from '../../../../src/upstream/body/multipart-scan.ts';
import { cutsOf, encode, rawOf, scanForm } from './feed.ts';

const part = (headers: string, content: string): string =>
  `--B\r\n${headers}\r\n\r\n${content}\r\n`;
const field = (name: string, content: string): string =>
  part(`Content-Disposition: form-data; name="${name}"`, content);
const file = (name: string, content: string): string =>
  part(
    `Content-Disposition: form-data; name="${name}"; filename="a; name=\\"model\\".wav"\r\nContent-Type: audio/wav`,
    content,
  );
const MODEL = field('model', 'whisper-1');

/** Body → model; null: absent. */
const READABLE: [string, string | null][] = [
  [`${MODEL}--B--`, 'whisper-1'],
  [`${field('language', 'en')}${MODEL}${file('file', 'x')}--B--\r\n`, 'whisper-1'],
  [`${file('file', '\r\n--b\r\n\r\r\n--A\r\n--B-')}${MODEL}--B--`, 'whisper-1'],
  [`${file('file', '\r\n--Boundary\r\n\r\n--B-x\r\n--B x')}${MODEL}--B--`, 'whisper-1'],
  [`${file('model', 'not me')}${MODEL}--B--`, 'whisper-1'],
  [`${file('model', 'not me')}--B--`, null],
  [`preamble\r\n${MODEL}--B--`, 'whisper-1'],
  [`--B \t\r\n${MODEL.slice(5)}--B  \r\n`, 'whisper-1'],
  [`${part('content-disposition:form-data;NAME=model', 'm')}--B--`, 'm'],
  [`${part('X: y\r\nContent-Disposition: form-data ; name = model ', 'm')}--B--`, 'm'],
  [`${part('Content-Disposition: form-data; x="name=model"', 'no')}--B--`, null],
  [`--B\r\n\r\nno headers\r\n${MODEL}--B--`, 'whisper-1'],
  [`${field('model', '')}--B--`, ''],
  [`${field('model', 'a\r\n--Bx\r\nb')}--B--`, 'a\r\n--Bx\r\nb'],
  [`${field('model', 'größe\r')}--B--`, 'größe\r'],
  [`${field('models', 'no')}--B--\r\n${MODEL}`, null],
  [`--B\r\nX: y\r\n\r\n${MODEL}--B--`, 'whisper-1'],
  ['--B--', null],
];

const UNREADABLE = [
  '',
  'no boundary at all',
  MODEL.slice(0, -2),
  `${field('language', 'en')}--B\r\nContent-Disposition`,
  `${field('model', 'm'.repeat(2_000))}--B--`,
  `--B\r\n${'X: y\r\n'.repeat(2_000)}`,
];

describe('the multipart scan', () => {
  it('finds the field wherever the body is cut', () => {
    for (const [text, model] of READABLE) {
      const bytes = encode(text);
      for (const cuts of cutsOf(bytes.length)) {
        const state = scanForm('B', bytes, cuts);
        expect(
          state.kind === 'found' ? state.model : state.kind,
          `${text} cut at ${cuts.join()}`,
        ).toBe(model ?? 'absent');
        expect(rawOf(state, bytes)).toBe(model ?? '');
      }
    }
  });

  it('says that a form is broken', () => {
    for (const text of UNREADABLE) {
      for (const cuts of cutsOf(Math.min(encode(text).length, 300))) {
        expect(scanForm('B', encode(text), cuts).kind, `${text.slice(0, 80)}`).toBe('unreadable');
      }
    }
  });

  it('finds the field behind a file of 20 MB', () => {
    const content = new Uint8Array(20_000_000).fill(0x0d);
    const scan = createMultipartModelScan('B');
    scan.push(encode('--B\r\nContent-Disposition: form-data; name=f; filename=f\r\n\r\n'));
    scan.push(content);
    expect(scan.push(encode(`\r\n${MODEL}--B--`))).toMatchObject({ model: 'whisper-1' });
  });

  it('finds what FormData writes, with any fields, contents and cuts', async () => {
    // Contents made of pieces of boundaries meet the borders that random bytes never would.
    const piece = fc.oneof(
      fc.constantFrom('\r', '\n', '\r\n', '--', '\r\n--', '-', 'model', '"'),
      fc.string({ unit: 'binary', maxLength: 20 }),
    );
    const content = fc.array(piece).map((pieces) => pieces.join(''));
    const fields = fc.array(fc.tuple(fc.constantFrom('file', 'x', 'model'), content));
    const model = fc.option(fc.string({ minLength: 1 }), { nil: undefined });
    await fc.assert(
      fc.asyncProperty(fields, model, fc.array(fc.nat()), async (files, name, cuts) => {
        const form = new FormData();
        for (const [key, text] of files) form.append(key, new Blob([text]), `${key}.bin`);
        if (name !== undefined) form.append('model', name);
        form.append('language', 'en');
        const response = new Response(form);
        const boundary = multipartBoundary(response.headers.get('content-type') ?? '');
        const bytes = await response.bytes();
        const state = scanForm(
          boundary ?? '',
          bytes,
          cuts.map((at) => at % (bytes.length + 1)),
        );
        const expected = name === undefined ? { kind: 'absent' } : { model: normalized(name) };
        expect(state).toMatchObject(expected);
      }),
      { numRuns: 500 },
    );
  });

  it('reads the boundary from the content type', () => {
    expect(multipartBoundary('multipart/form-data; boundary=abc')).toBe('abc');
    expect(multipartBoundary('multipart/form-data; charset=utf-8; Boundary="a b;c"')).toBe('a b;c');
    expect(multipartBoundary('multipart/form-data; boundary=abc; x=y')).toBe('abc');
    expect(multipartBoundary('multipart/form-data')).toBeNull();
    expect(multipartBoundary('multipart/form-data; boundary=')).toBeNull();
  });
});

/** Forms write every line end as CRLF, and replace what is no Unicode. */
function normalized(text: string): string {
  return text.replaceAll(/\r?\n|\r(?!\n)/g, '\r\n').toWellFormed();
}
