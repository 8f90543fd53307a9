import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createJsonModelScan } from '../../../../src/upstream/body/json-model-scan.ts';
import { cutsOf, encode, rawOf, scan, scanJson } from './feed.ts';

/** Body → model; null: absent. */
const READABLE: [string, string | null][] = [
  ['{"model":"gpt-4o"}', 'gpt-4o'],
  [' \r\n\t{ "model" :\n "gpt-4o" , "stream": true }', 'gpt-4o'],
  ['{"messages":[{"content":"x"}],"stream":false,"n":-1.5e+3,"model":"m"}', 'm'],
  ['{"a":{"model":"inner"},"b":[{"model":"inner"}],"model":"outer"}', 'outer'],
  ['{"text":"\\"model\\":\\"decoy\\"","model":"m"}', 'm'],
  ['{"text":"ends in backslashes\\\\\\\\","model":"m"}', 'm'],
  ['{"deep":[["\\\\",{"a":"}]\\""}],"]"],"model":"m"}', 'm'],
  ['{"mod\\u0065l":"gpt\\u002d4o\\/x"}', 'gpt-4o/x'],
  ['{"\\u006d\\u006f\\u0064\\u0065\\u006c":"m"}', 'm'],
  ['{"model":"日本語 😀 \\ud83d\\ude00"}', '日本語 😀 😀'],
  ['{"Model":"no","models":"no","model ":"no","mödel":"no"}', null],
  ['{"\ufeffmodel":"no","\ufeffmod\\u0065l":"no"}', null],
  ['{"model":""}', ''],
  ['{"model":"first","model":"last"}', 'first'],
  ['\ufeff{"model":"m"}', 'm'],
  ['\ufeff\ufeff{"model":"m"}', null],
  ['\ufeff', null],
  ['{"model":null}', null],
  ['{"model":["m"]}', null],
  ['{}', null],
  [' { } ', null],
  ['', null],
  ['  ', null],
  ['[{"model":"m"}]', null],
  ['"model"', null],
  ['RIFF binary', null],
];

const UNREADABLE = [
  '{',
  '{"model"',
  '{"model":"gpt',
  '{"model":"gpt\\',
  '{"a":[1,2',
  '{"a":"b" "model":"m"}',
  '{model:"m"}',
  '{"a" "model"}',
  '{"a":,"model":"m"}',
  '{"model":"\\x"}',
  `{"model":"${'m'.repeat(2_000)}"}`,
];

describe('the JSON scan', () => {
  it('finds the top-level model wherever the body is cut', () => {
    for (const [text, model] of READABLE) {
      for (const cuts of cutsOf(encode(text).length)) {
        const state = scanJson(text, cuts);
        expect(
          state.kind === 'found' ? state.model : state.kind,
          `${text} cut at ${cuts.join()}`,
        ).toBe(model ?? 'absent');
      }
    }
  });

  it('says that a body is broken wherever it is cut', () => {
    for (const text of UNREADABLE) {
      for (const cuts of cutsOf(encode(text).length)) {
        expect(scanJson(text, cuts).kind, `${text} cut at ${cuts.join()}`).toBe('unreadable');
      }
    }
    const notUtf8 = new Uint8Array([...encode('{"model":"'), 0xff, ...encode('"}')]);
    expect(scan(createJsonModelScan(), notUtf8).kind).toBe('unreadable');
  });

  it('names the bytes of the value between its quotes', () => {
    const text = '{"ü":"ü","model":"anthropic\\/claude"}';
    for (const cuts of cutsOf(encode(text).length)) {
      expect(rawOf(scanJson(text, cuts), encode(text))).toBe('anthropic\\/claude');
    }
  });

  it('stops at the model, whatever follows', () => {
    expect(createJsonModelScan().push(encode('{"model":"m" broken')).kind).toBe('found');
  });

  it('reads a key of any length', () => {
    expect(scanJson(`{"${'k'.repeat(5_000)}":1,"model":"m"}`)).toMatchObject({ model: 'm' });
  });

  it('agrees with JSON.parse on any object, spacing and cuts', () => {
    const key = fc.oneof(fc.constantFrom('model', 'Model', 'mode', '"model"', '\\'), fc.string());
    const value = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('"model":"x"', '\\', '\\\\"', '{"model":"x"}'),
      fc.jsonValue(),
      fc.record({ model: fc.string() }),
    );
    const body = fc.array(fc.tuple(key, value), { maxLength: 6 });
    const model = fc.option(fc.string({ unit: 'binary' }), { nil: undefined });
    const inputs = [body, model, fc.nat(), fc.array(fc.nat()), fc.nat(4), fc.boolean()] as const;
    fc.assert(
      fc.property(...inputs, (entries, name, position, cuts, indent, isAscii) => {
        const pairs = [...entries];
        if (name !== undefined) pairs.splice(position % (pairs.length + 1), 0, ['model', name]);
        let text = JSON.stringify(Object.fromEntries(pairs), null, indent);
        if (isAscii) text = text.replaceAll(/[^\x20-\x7e\n]|[a-f]/g, escaped);
        const bytes = encode(text);
        const state = scan(
          createJsonModelScan(),
          bytes,
          cuts.map((at) => at % (bytes.length + 1)),
        );
        const parsed = JSON.parse(text) as Record<string, unknown>;
        const expected = Object.hasOwn(parsed, 'model') ? parsed['model'] : null;
        const isText = typeof expected === 'string';
        expect(state).toMatchObject(isText ? { model: expected } : { kind: 'absent' });
        expect(JSON.parse(`"${rawOf(state, bytes)}"`)).toBe(isText ? expected : '');
      }),
      { numRuns: 3_000 },
    );
  });
});

/** As ASCII-escaping clients write it. Letters outside of strings must stay as they are. */
function escaped(character: string, offset: number, whole: string): string {
  const code = character.charCodeAt(0);
  const before = whole.slice(0, offset).replaceAll(/\\./g, '');
  const isInString = (before.match(/"/g) ?? []).length % 2 === 1;
  const isEscape = /\\(u[0-9a-f]{0,3})?$/.test(whole.slice(0, offset).replaceAll('\\\\', ''));
  if (!isInString || isEscape) return character;
  return `\\u${code.toString(16).padStart(4, '0')}`;
}
