// Values of headers are parsed by their grammar: a word in a value is not the parameter of that name.
import { describe, expect, it, test } from 'vitest';
import {
  listItems,
  mediaType,
  parameterOf,
  parseHeaderValue,
  prefersType,
} from '../../../src/runtime/header-value.ts';

const parametersOf = (text: string): [string, string][] =>
  parseHeaderValue(text).parameters.map(({ name, value }) => [name, value]);

describe('a value with parameters', () => {
  test.each([
    ['Form-Data', 'form-data', []],
    ['form-data; name="a"', 'form-data', [['name', 'a']]],
    [
      'a/b;c=d ;\tE = "f;g, \\"h\\""; i=',
      'a/b',
      [
        ['c', 'd'],
        ['e', 'f;g, "h"'],
        ['i', ''],
      ],
    ],
    ['a;;b=c;', 'a', [['b', 'c']]],
    [
      'a; b=c d; e=f',
      'a',
      [
        ['b', 'c d'],
        ['e', 'f'],
      ],
    ],
    [
      'a; b="c" d; e=f',
      'a',
      [
        ['b', 'c'],
        ['e', 'f'],
      ],
    ],
    ['a; b="c', 'a', [['b', '"c']]],
    ['"a;b";c=d', '"a;b"', [['c', 'd']]],
    ["a; b*=utf-8''c%20d", 'a', [['b*', "utf-8''c%20d"]]],
    ['', '', []],
  ])('is %j', (text, value, parameters) => {
    expect(parseHeaderValue(text).value).toBe(value);
    expect(parametersOf(text)).toEqual(parameters);
  });

  it('says whether it follows the grammar', () => {
    for (const text of ['a', 'a;b=c', 'a; b = "c\\"d" ;']) {
      expect(parseHeaderValue(text).isValid).toBe(true);
    }
    for (const text of ['a;b', 'a;b="c', 'a;b=c d', 'a;b=c:d', 'a;b="c"d', 'a;b=']) {
      expect(parseHeaderValue(text).isValid).toBe(false);
    }
  });

  it('keeps the escapes of a quoted string beside its value', () => {
    const name = parameterOf(parseHeaderValue('a; name="mo\\del"'), 'name');
    expect(name).toMatchObject({ value: 'model', raw: 'mo\\del' });
  });

  it('is read in time that grows with its length', () => {
    // In quadratic time, each of these would take hours.
    for (const piece of [';a="', ';a="\\"', ';"', '\\"', ';a=b ', '"', ';']) {
      const text = `x${piece.repeat(200_000)}`;
      expect(parseHeaderValue(text).isValid).toBeTypeOf('boolean');
      expect(listItems(text).length).toBeGreaterThan(0);
    }
  });
});

test('a media type ends at its parameters', () => {
  expect(mediaType(' Text/Event-Stream ; x="application/json"')).toBe('text/event-stream');
  expect(mediaType(null)).toBe('');
});

test('a list is split at commas outside of quoted strings', () => {
  expect(listItems('a, "b,c" , d;e="f, \\"g",,')).toEqual(['a', '"b,c"', 'd;e="f, \\"g"']);
  expect(listItems('"a, b')).toEqual(['"a, b']);
});

describe('a type is preferred', () => {
  const isYaml = (type: string): boolean => type === 'application/yaml';
  test.each([
    [undefined, false],
    ['*/*', false],
    ['application/yaml', true],
    ['Application/YAML;q=0.5, */*', true],
    ['application/yaml, application/json', true],
    ['application/json, application/yaml', false],
    ['application/json;q=0.5, application/yaml;q=0.9', true],
    ['application/json, application/yaml;q=0', false],
    ['application/yaml;q=0', false],
    ['text/html;note="application/yaml"', false],
  ])('by %j: %s', (accept, isPreferred) => {
    expect(prefersType(accept, isYaml, 'application/json')).toBe(isPreferred);
  });
});
