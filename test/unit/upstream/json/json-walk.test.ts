import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { JsonKey, KeyNames } from '../../../../src/upstream/json/json-string.ts';
import type {
  JsonVisitor,
  ValueKind,
  WalkedValue,
  Want,
  WalkForm,
} from '../../../../src/upstream/json/json-syntax.ts';
import { JsonWalk } from '../../../../src/upstream/json/json-walk.ts';
import { encode } from '../usage/frames.ts';
import { cutAt, cutsOf } from '../usage/cuts.ts';

/** A walk against `JSON.parse`: every value of any text, wherever its bytes are cut. */

const KNOWN = new Set(['a', 'usage', 'key', 'long'.repeat(10)]);

/** Keeps every scalar and counts every string, with the path to it. */
class JsonWalkListing implements JsonVisitor {
  readonly found: string[] = [];
  readonly records: boolean[] = [];

  begin(_: WalkedValue, kind: ValueKind): Want {
    if (kind === 'string') return 'count';
    return kind === 'scalar' ? 'keep' : 'walk';
  }

  end(value: WalkedValue, kind: ValueKind): void {
    const path = Array.from({ length: value.depth }, (_, level) => value.key(level + 1));
    const text = `${value.textBytes} in ${value.words}`;
    const what = kind === 'string' ? text : new TextDecoder().decode(value.kept);
    this.found.push(`${path.join('/')}=${what}`);
  }

  record(isWhole: boolean): void {
    this.records.push(isWhole);
  }
}

function listed(pieces: readonly Uint8Array[], form: WalkForm = 'document'): JsonWalkListing {
  const listing = new JsonWalkListing();
  const walk = new JsonWalk(listing, {
    form,
    keys: new KeyNames(KNOWN),
    keepBytesMax: 64,
  });
  for (const piece of pieces) walk.push(piece);
  walk.close();
  return listing;
}

/** Control characters are blanks as well. */
function wordsOf(text: string): number {
  const letters = Array.from(text, (letter) => (letter <= ' ' ? ' ' : letter));
  return letters.join('').split(' ').filter(Boolean).length;
}

function expected(value: unknown, path: readonly string[]): string[] {
  if (Array.isArray(value)) return value.flatMap((element) => expected(element, [...path, '']));
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).flatMap(([key, inner]) =>
      expected(inner, [...path, KNOWN.has(key) ? key : '']),
    );
  }
  const what =
    typeof value === 'string'
      ? `${encode(value).length} in ${wordsOf(value)}`
      : JSON.stringify(value);
  return [`${path.join('/')}=${what}`];
}

const anyKey = fc.oneof(fc.constantFrom(...KNOWN, '', 'k"ey'), fc.string());
const { tree } = fc.letrec((tie) => ({
  leaf: fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('"', '\\', '\\"', '{"a":', ']}', 'é\u0000\n', '😀'),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
  ),
  tree: fc.oneof(
    { depthSize: 'small' },
    tie('leaf'),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(anyKey, tie('tree'), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

test('a walk tells what a parser finds', () => {
  const text = fc
    .record({
      root: fc.dictionary(anyKey, tree, { noNullPrototype: true }),
      spaces: fc.constantFrom(0, 1, '\t'),
    })
    .map(({ root, spaces }) => JSON.stringify(root, null, spaces))
    .chain((json) => fc.tuple(fc.constant(json), cutsOf(encode(json).length), fc.boolean()));
  fc.assert(
    fc.property(text, ([json, cuts, isAscii]) => {
      const written = isAscii
        ? json.replaceAll(
            /[^\x20-\x7e\n\t]/g,
            (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
          )
        : json;
      const pieces = cutAt(
        encode(written),
        cuts.filter((cut) => cut <= written.length),
      );
      for (const form of ['document', 'object', 'strict_object'] as const) {
        const listing = listed(pieces, form);
        expect(listing.found).toEqual(expected(JSON.parse(json), []));
        expect(listing.records).toEqual([true]);
      }
    }),
    { numRuns: 500 },
  );
});

/** Keeps what stands under one key and steps over what stands under another. */
class Picking implements JsonVisitor {
  readonly kept: string[] = [];

  begin(value: WalkedValue, kind: ValueKind): Want {
    const key = value.key(value.depth);
    if (key === 'key') return 'keep';
    return key === 'usage' || kind === 'string' ? 'skip' : 'walk';
  }

  end(value: WalkedValue, kind: ValueKind): void {
    const text = new TextDecoder().decode(value.kept);
    this.kept.push(kind === 'string' ? `"${text}"` : text);
  }

  record(): void {
    // The values are what matters here.
  }
}

function picked(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(picked);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (name === 'key') return [JSON.stringify(inner)];
    return name === 'usage' ? [] : picked(inner);
  });
}

test('a walk keeps what it is told to, byte for byte, and steps over the rest', () => {
  const text = fc
    .dictionary(anyKey, tree, { noNullPrototype: true })
    .map((root) => JSON.stringify(root))
    .chain((json) => fc.tuple(fc.constant(json), cutsOf(encode(json).length)));
  fc.assert(
    fc.property(text, ([json, cuts]) => {
      const picking = new Picking();
      const options = { keys: new KeyNames(KNOWN), keepBytesMax: 100_000 };
      for (const form of ['document', 'lines', 'object', 'strict_object'] as const) {
        const walk = new JsonWalk(picking, { ...options, form });
        for (const piece of cutAt(encode(json), cuts)) walk.push(piece);
        expect(picking.kept.splice(0)).toEqual(picked(JSON.parse(json)));
      }
    }),
    { numRuns: 500 },
  );
});

test('of one object it is told what breaks its top level, and what stands beside it', () => {
  const said = (text: string, form: WalkForm): string => {
    const heard: string[] = [];
    const visitor: JsonVisitor = {
      begin: () => 'skip',
      end: () => heard.push('end'),
      record: (isWhole) => heard.push(isWhole ? 'whole' : 'broken'),
      stray: () => heard.push('stray'),
    };
    const walk = new JsonWalk(visitor, { form, keys: new KeyNames(KNOWN), keepBytesMax: 64 });
    for (const byte of encode(text)) walk.push(Uint8Array.of(byte));
    return heard.join();
  };
  for (const form of ['object', 'strict_object'] as const) {
    expect(said('\ufeff {"a":[1],"b":{}}\n', form)).toBe('whole');
    expect(said('{"a":1} {"a":1}', form)).toBe('whole,stray');
    expect(said('{"a":1}\u0000', form)).toBe('whole,stray');
    expect(said('[{"a":1}]', form)).toBe('stray');
    expect(said(' \ufeff{"a":1}', form)).toBe('stray');
    expect(said('{"a":1]', form)).toBe('broken');
    expect(said('{"a":\'1\'}', form)).toBe('broken');
    expect(said('{\u0000"a":1}', form)).toBe('broken');
  }
  expect(said('{"a":[/**/]}', 'object')).toBe('whole');
  expect(said('{"a":[/**/]}', 'strict_object')).toBe('broken');
});

test('a visitor that has left is told no more', () => {
  const seen: number[] = [];
  const visitor: JsonVisitor = {
    begin(value) {
      seen.push(value.start);
      if (value.key(1) === 'key') value.leave();
      return 'walk';
    },
    end: () => seen.push(-1),
    record: () => seen.push(-2),
  };
  const options = { form: 'object', keys: new KeyNames(KNOWN), keepBytesMax: 64 } as const;
  for (const value of ['1', '"x"', '[1]', '{"a":1}']) {
    const walk = new JsonWalk(visitor, options);
    walk.push(encode(`{"a":0,"key":${value},"a":1}`));
    walk.push(encode('}{"a":1}'));
    walk.close();
    expect(seen.splice(0)).toEqual([5, 13]);
  }
});

test('a line of many long strings is searched once', () => {
  const text = `{"a":[${Array.from({ length: 500 }, () => JSON.stringify('x'.repeat(100))).join()}]}`;
  const chunk = encode(`data: ${text}\n`);
  const search = vi.spyOn(Uint8Array.prototype, 'indexOf');
  const picking = new Picking();
  const options = { form: 'lines', keys: new KeyNames(KNOWN), keepBytesMax: 64 } as const;
  new JsonWalk(picking, options).push(chunk);
  const searched = search.mock.calls.map(([, from = 0], index) => {
    const { length } = search.mock.contexts[index] as unknown as Uint8Array;
    const at = Number(search.mock.results[index]?.value);
    return (at === -1 ? length : at) - from;
  });
  search.mockRestore();
  expect(searched.length).toBeGreaterThan(500);
  expect(searched.reduce((sum, bytes) => sum + bytes)).toBeLessThan(4 * chunk.length);
});

test('of a long key the beginning is not taken for all of it', () => {
  const name = 'a'.repeat(14);
  const written = `${String.raw`\u0061`.repeat(10)}aaaa`;
  const keyRead = new JsonKey(new KeyNames([name]), false);
  for (const [end, found] of [
    ['"', name],
    ['b"', ''],
  ] as const) {
    keyRead.begin();
    keyRead.read(encode(written + end), 0);
    expect(keyRead.name()).toBe(found);
  }
});

test('a text that nests deeper than the walk follows costs no memory and ends well', () => {
  const deep = `{"a":${'['.repeat(100_000)}"x"${']'.repeat(100_000)},"usage":1}`;
  expect(listed([encode(deep)]).found).toEqual(['usage=1']);
});

test.each(['{', '{"a"', '{"a":1', '{"a":[1', '{"a":"x', '{a}', '{"a" 1}', '{"a":1 2}'])(
  'a record that is %s is not whole',
  (text) => {
    expect(listed([encode(text)]).records).toEqual([false]);
  },
);

test.each(['', '[]', '7', '"', '[1,"x"]'])('%j holds no record', (text) => {
  expect(listed([encode(text)]).records).toEqual([]);
});
