// A scan that must find the model that the upstream will read, whatever its parser makes of odd bodies.
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  createJsonModelScan,
  createJsonStreamScan,
} from '../../../../src/upstream/body/json-model-scan.ts';
import { cutsOf, encode, rawOf, scan } from './feed.ts';

const READABLE: [string, string | null][] = [
  ['{"model":"gpt-4o"}', 'gpt-4o'],
  ['\ufeff { "model" :\n "gpt-4o" , "stream": true }\r\n', 'gpt-4o'],
  ['{"mod\\u0065l":"gpt\\u002d4o\\/x"}', 'gpt-4o/x'],
  ['{"a":{"model":"inner","models":[]},"b":[[{"model":"inner"}]],"model":"m"}', 'm'],
  ['{"text":"\\"model\\":\\"decoy\\" /* \' */","model":"m"}', 'm'],
  ['{"a":[1,-2.5e+3,true,false,null,NaN],"model":"m"}', 'm'],
  ['{"model":"m","extra_body":{"google":{"thinking_config":{"a":[{"b":1}]}}},"user":"u"}', 'm'],
  ['{"providerOptions":{"gateway":{"order":["a"]}},"model":"m","a":{"model":"inner"}}', 'm'],
  ['{"extra_body":null,"model":"m"}', 'm'],
  ['{"model":null}', null],
  ['{"messages":[]}', null],
  ['{}', null],
  ['', null],
  ['  ', null],
];

const TWICE = [
  '{"model":"a","model":"b"}',
  '{"model":"a","model":"a"}',
  '{"model":"a","mod\\u0065l":"b"}',
  '{"\\u006d\\u006f\\u0064\\u0065\\u006c":"a","model":"b"}',
  '{"model":null,"model":"b"}',
  '{"model":1,"model":"b"}',
  '{"model":["a"],"model":"b"}',
  '{"model":"a","model":null}',
  '{"model":"a","model":{"a":1}}',
  '{"model":"a","messages":[{"model":"c"}],"MODEL":"b"}',
  '{"Model":"a","model":"b"}',
  '{"Model":"a","mOdel":"b"}',
];

const UNREADABLE = [
  '{"model":["a"]}',
  '{"model":{"a":1}}',
  '{"model":true}',
  '{"Model":"a"}',
  '{"model":"a,b"}',
  '{"model":"a","models":["b"]}',
  '{"fallbacks":["b"],"model":"a"}',
  '{"model":"a","context_window_fallbacks":[{"a":["b"]}]}',
  '{"model":"a","content_policy_fallbacks":[{"a":["b"]}]}',
  '{"model":"a","fallback_models":["b"]}',
  '{"model":"a","model_list":[]}',
  '{"model":"a","User_Config":{}}',
  '{"model":"a","extra_body":{"model":"b"}}',
  '{"extraBody":{"x":{"a":1},"mod\\u0065l":"b"},"model":"a"}',
  '{"model":"a","providerOptions":{"gateway":{"models":["b"]}}}',
  '{"model":"a","provider_options":[{"gateway":{"Models":["b"]}}]}',
  '{"model":"a"} {"model":"b"}',
  '{"model":"a"}\u0000',
  '{"model":"a"',
  '{"model":"a","x":[1',
  '[{"model":"a"}]',
  '"model"',
  '\ufeff\ufeff{"model":"a"}',
  '--B\r\nContent-Disposition: form-data; name="model"\r\n\r\na\r\n--B--',
  'model=a',
  // Nothing but a list, to who does not know these comments and quotes.
  '{"a":[/*"*/],"model":"b","c":[/*"*/]}',
  '{"a":[//"\n],"model":"b","c":[//"\n]}',
  '{"a":[#"\n],"model":"b","c":[#"\n]}',
  '{"a":[\'"\'],"model":"b","c":[\'"\']}',
  '{"a":1 /* , */,"model":"b"}',
  '{"a":{`"`:1},"model":"b"}',
  '{"mod\\el":"b"}',
  '{"mod\\u00":"b"}',
];

describe('a thorough scan', () => {
  test.each(READABLE)('finds the one model wherever the body is cut: %s', (text, model) => {
    for (const cuts of cutsOf(encode(text).length)) {
      const bytes = encode(text);
      const state = scan(createJsonModelScan('thorough'), bytes, cuts);
      expect(state).toMatchObject(model === null ? { kind: 'absent' } : { kind: 'found', model });
      expect(JSON.parse(`"${rawOf(state, bytes)}"`)).toBe(model ?? '');
    }
  });

  test.each(TWICE)('says that there are two: %s', (text) => {
    for (const cuts of cutsOf(encode(text).length)) {
      expect(scan(createJsonModelScan('thorough'), encode(text), cuts).kind).toBe('twice');
    }
  });

  test.each(UNREADABLE)('does not guess: %s', (text) => {
    for (const cuts of cutsOf(encode(text).length)) {
      expect(scan(createJsonModelScan('thorough'), encode(text), cuts).kind).toBe('unreadable');
    }
  });

  test.each([
    ['UTF-16 with a mark', [0xff, 0xfe, 0x7b, 0]],
    ['UTF-16 without one', [0x7b, 0, 0x22, 0]],
    ['UTF-16 the other way round', [0, 0x7b, 0, 0x22]],
    ['UTF-32', [0x7b, 0, 0, 0]],
    ['a blank, and then UTF-16', [0x20, 0, 0x7b, 0]],
    ['gzip', [0x1f, 0x8b, 8, 0]],
    ['a key that is not UTF-8', [...encode('{"mod'), 0xff, ...encode('el":"a"}')]],
  ])('does not take another encoding for a body without a model: %s', (_, bytes) => {
    expect(scan(createJsonModelScan('thorough'), new Uint8Array(bytes)).kind).toBe('unreadable');
  });

  it('tells a second model the moment that its key ends, though the first was found long ago', () => {
    const body = createJsonModelScan('thorough');
    expect(body.push(encode('{"model":"a","x":"'))).toMatchObject({ model: 'a' });
    for (let piece = 0; piece < 10; piece += 1) {
      expect(body.push(new Uint8Array(100_000).fill(0x78))).toMatchObject({ model: 'a' });
    }
    expect(body.push(encode('","mod')).kind).toBe('found');
    expect(body.push(encode('el"')).kind).toBe('twice');
  });

  it('finds whether a stream is asked for too', () => {
    const body = createJsonStreamScan('thorough');
    expect(body.push(encode('{"model":"a",')).kind).toBe('more');
    expect(body.push(encode('"stream":true,')).kind).toBe('found');
    expect(body.isStream).toBe(true);
    expect(body.push(encode('"model":')).kind).toBe('twice');
  });

  it('never says another model than parsers that take the last, of whatever case', () => {
    fc.assert(
      fc.property(bodies, cutsAnywhere, ({ text, keys }, cuts) => {
        const bytes = encode(text);
        const state = scan(createJsonModelScan('thorough'), bytes, within(cuts, bytes));
        const got = state.kind === 'found' ? `found ${state.model}` : state.kind;
        expect(verdictsOf(text, keys)).toContain(got);
      }),
      { numRuns: 3_000 },
    );
  });

  it('says the model of JSON.parse or none, of bodies with anything done to them', () => {
    const bite = fc.tuple(fc.nat(), fc.nat(3), fc.constantFrom(...BITES));
    fc.assert(
      fc.property(
        bodies,
        fc.array(bite, { maxLength: 3 }),
        cutsAnywhere,
        ({ text }, bites, cuts) => {
          let bitten = text;
          for (const [at, length, put] of bites) {
            const from = at % (bitten.length + 1);
            bitten = bitten.slice(0, from) + put + bitten.slice(from + length);
          }
          const bytes = encode(bitten);
          const state = scan(createJsonModelScan('thorough'), bytes, within(cuts, bytes));
          if (state.kind !== 'found' && state.kind !== 'absent') return;
          const parsed = parsedOrNull(new TextDecoder().decode(bytes));
          if (parsed === null) return;
          const names = Object.keys(parsed).filter((key) => key.toLowerCase() === 'model');
          const value = names.length === 0 ? null : parsed[names[0] ?? ''];
          expect(names.length).toBeLessThan(2);
          expect(state.kind === 'found' ? state.model : null).toBe(value);
        },
      ),
      { numRuns: 5_000 },
    );
  });
});

const BITES = ['"', '\\', '{', '}', '[', ']', ',', ':', '/*', '*/', "'", 'model', '"model":', ' '];

const KEYS = ['"model"', '"mod\\u0065l"', '"\\u006dodel"', '"Model"', '"MODEL"', '"\\u004dodel"'];
const OTHERS = ['"messages"', '"stream"', '"mode"', '"model "', '"\\"model\\""', '"m\\u00f6del"'];

const key = fc.oneof(fc.constantFrom(...KEYS), {
  weight: 3,
  arbitrary: fc.constantFrom(...OTHERS),
});

const value = fc.oneof(
  fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
  fc.constantFrom('null', '1', 'true', '"a"', '"b"', '"\\\\"', '"\\u0061"', '{"model":"x"}', '[]'),
  fc.jsonValue().map((any) => JSON.stringify(any)),
);

const blank = fc.constantFrom('', '', ' ', '\n\t', '\r\n');

/** A JSON object as text, with the names at its top in order. */
const bodies = fc.array(fc.tuple(key, value, blank), { maxLength: 5 }).map((pairs) => ({
  text: `{${pairs.map(([name, of, space]) => `${space}${name}${space}:${space}${of}`).join(',')}}`,
  keys: pairs.map(([name]) => JSON.parse(name) as string),
}));

const cutsAnywhere = fc.array(fc.nat(), { maxLength: 8 });

function within(cuts: readonly number[], bytes: Uint8Array): number[] {
  return cuts.map((at) => at % (bytes.length + 1));
}

/** Lists what a scan may say of a JSON object with these names at its top. */
function verdictsOf(text: string, keys: readonly string[]): string[] {
  const models = keys.filter((name) => name.toLowerCase() === 'model');
  if (models.length > 1) return ['twice', 'unreadable'];
  const [only = 'model'] = models;
  const named = (JSON.parse(text) as Record<string, unknown>)[only] ?? null;
  if (only !== 'model') return ['unreadable'];
  if (named === null) return ['absent'];
  return typeof named === 'string' && !named.includes(',') ? [`found ${named}`] : ['unreadable'];
}

function parsedOrNull(text: string): Record<string, unknown> | null {
  try {
    const parsed: unknown = JSON.parse(text.replace(/^\ufeff/, ''));
    return parsed !== null && typeof parsed === 'object' && !Array.isArray(parsed)
      ? (parsed as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
