import { describe, expect, it } from 'vitest';
import {
  ConfigShapeError,
  ConfigSyntaxError,
  parseConfigText,
} from '../../../src/config/parse-text.ts';

describe('parseConfigText', () => {
  it.each([
    ['{"a": [1, "x"]}', 'application/json'],
    ['{"a": [1, "x"]}', null],
    ['{"a": [1, "x"]}', 'application/x-www-form-urlencoded'],
    ['a: [1, x]', 'application/yaml'],
    ['a:\n  - 1\n  - x\n', 'text/x-yaml; charset=utf-8'],
    ['# ours\na:\n- 1\n- x\n', null],
    ['list: &list [1, x]\na: *list', 'application/yaml'],
  ])('reads %j as %s', (text, type) => {
    expect(parseConfigText(text, type)).toMatchObject({ a: [1, 'x'] });
  });

  it.each([
    ['{"a": 1', 'application/json', 'The document is not valid JSON at line 1, column 8.'],
    ['{\n "a": 1,,\n}', null, 'The document is not valid JSON at line 2, column 9.'],
    [
      'a: 1\na: 2',
      'text/yaml',
      'The document is not valid YAML at line 2, column 1: duplicate key.',
    ],
    [
      'a:\n  - { b: 1, "b": 2 }',
      'text/yaml',
      'The document is not valid YAML at line 2, column 13: duplicate key.',
    ],
    ['a: !!js/function f', 'text/yaml', 'at line 1, column 4: tag resolve failed.'],
    ['a: !ours f', 'text/yaml', 'at line 1, column 4: tag resolve failed.'],
    ['a: 1\n---\nb: 2', 'text/yaml', 'multiple docs.'],
    [
      'b: 1\na: *nowhere',
      'text/yaml',
      'line 2, column 4: no anchor before this alias has its name',
    ],
    ['a: *later\nb: &later 1', 'text/yaml', 'line 1, column 4: no anchor'],
  ])('refuses %j', (text, type, message) => {
    const read = () => parseConfigText(text, type);
    expect(read).toThrow(ConfigSyntaxError);
    expect(read).toThrow(message);
  });

  it('goes by the type alone, not by words in its parameters', () => {
    expect(parseConfigText('a: 1', 'application/yaml; profile="json"')).toEqual({ a: 1 });
    expect(parseConfigText('a: 1', 'text/plain; charset=utf-8; note=json')).toEqual({ a: 1 });
    const json = (): unknown => parseConfigText('{ a: 1 }', 'application/json; note=yaml');
    expect(json).toThrow('not valid JSON');
  });

  it.each([
    ['a: &a [*a]', 'line 1, column 8'],
    ['&a [ *a ]', 'line 1, column 6'],
    ['a: &a\n  b:\n    - { c: *a }', 'line 3, column 12'],
    ['a: &a { b: &b { c: *a, d: *b } }', 'line 1, column 20'],
  ])('refuses %j, which contains itself', (text, where) => {
    const read = () => parseConfigText(text, 'text/yaml');
    expect(read).toThrow(ConfigShapeError);
    expect(read).toThrow(`contains itself: the YAML alias at ${where}`);
  });

  it.each([
    ['{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000), 'application/json'],
    ['['.repeat(101) + ']'.repeat(101), 'application/json'],
    ['['.repeat(200) + ']'.repeat(200), 'text/yaml'],
    ['['.repeat(50_000) + ']'.repeat(50_000), 'text/yaml'],
    [Array.from({ length: 2_000 }, (_, at) => `${' '.repeat(at)}a:`).join('\n'), 'text/yaml'],
  ])('refuses a document that is nested too deeply (%#)', (text, type) => {
    const read = () => parseConfigText(text, type);
    expect(read).toThrow(ConfigShapeError);
    expect(read).toThrow('more than 100 levels deep');
  });

  it('refuses aliases of a long list, and reads a long list', () => {
    const list = `a: &a [${Array.from({ length: 20_000 }, () => 1).join(', ')}]`;
    expect(parseConfigText(list, 'text/yaml')).toMatchObject({ a: { length: 20_000 } });
    const repeated = `${list}\nb: [${Array.from({ length: 60 }, () => '*a').join(', ')}]`;
    expect(() => parseConfigText(repeated, 'text/yaml')).toThrow('more than 1000000 values');
  });

  it.each(['? [a]\n: b', '? { a: 1 }\n: b', '{ [a, b]: c }'])(
    'refuses a key that is a list or a map: %j',
    (text) => expect(() => parseConfigText(text, 'text/yaml')).toThrow('not valid YAML'),
  );

  it('reads a key that is a number or a YAML keyword as text', () => {
    const read = parseConfigText('1: a\ntrue: b\n~: c', 'text/yaml');
    expect(read).toEqual({ 1: 'a', true: 'b', '~': 'c' });
  });

  it('refuses aliases that would unfold into gigabytes', () => {
    const levels = Array.from({ length: 9 }, (_, at) => {
      const below = at === 0 ? 'x' : `*l${at - 1}`;
      return `l${at}: &l${at} [${Array.from({ length: 9 }, () => below).join(', ')}]`;
    });
    expect(() => parseConfigText(levels.join('\n'), 'text/yaml')).toThrow('cannot be resolved');
    const many = `a: &a x\nb: [${Array.from({ length: 101 }, () => '*a').join(', ')}]`;
    expect(() => parseConfigText(many, 'text/yaml')).toThrow('more than 100 YAML aliases');
  });

  it('reads a document of many keys in a time that grows with its length', () => {
    const keys = (count: number) =>
      Array.from({ length: count }, (_, at) => `k${at}: 1`).join('\n');
    const msOf = (text: string): number => {
      const started = process.cpuUsage();
      parseConfigText(text, 'text/yaml');
      // Of this process, whatever else the machine does.
      return process.cpuUsage(started).user / 1_000;
    };
    msOf(keys(2_000));
    const [few, ...many] = [2_000, 20_000, 20_000].map((count) => msOf(keys(count)));
    // With every key compared to every other, it would be a hundred times.
    expect(Math.min(...many)).toBeLessThan(40 * Math.max(10, few ?? 0));
  });

  it.each([
    ['{model_list: [{model_name: a}]}', { model_list: [{ model_name: 'a' }] }],
    ['[{a: 1}, b]', [{ a: 1 }, 'b']],
    ['{"a": 1,}', { a: 1 }],
    ['{\n# A comment.\na: yes}', { a: 'yes' }],
  ])('reads YAML that begins like JSON, unless it is said to be JSON: %j', (text, document) => {
    expect(parseConfigText(text, null)).toEqual(document);
    expect(() => parseConfigText(text, 'application/json')).toThrow('not valid JSON');
  });

  it.each([
    ['{"a": {"b": 1}', 'not valid JSON at line 1, column 15'],
    ['{"a": 1 "b": 2}', 'not valid JSON at line 1, column 9'],
    ['{"a": 1}\nfoo', 'not valid JSON at line 2, column 1'],
    ['{"a": 1, // why\n"b": 2}', 'not valid JSON at line 1, column 10'],
    ['{ /* why */ "b": 2}', 'not valid JSON at line 1, column 3'],
    ['{a: [1', 'not valid YAML at line 1, column 7'],
    ['{a: 1}}', 'not valid YAML at line 1, column 7'],
  ])('says what text that is neither was meant to be: %j', (text, message) => {
    expect(() => parseConfigText(text, null)).toThrow(message);
  });

  it.each([
    '{"key": sk-live-4711',
    'key: "sk-live-4711',
    '{"sk-live-4711" 1}',
    '{k: [sk-live-4711',
  ])('repeats nothing of a document that it cannot read: %s', (text) => {
    let message = '';
    try {
      parseConfigText(text, null);
    } catch (error) {
      message = String(error);
    }
    expect(message).toContain('not valid');
    expect(message).not.toContain('4711');
  });

  it('reads a date or a no as text or as YAML 1.2 says, never as something else', () => {
    expect(parseConfigText('a: 2026-01-01\nb: no\nc: 0o17\nd: 1e3', 'text/yaml')).toEqual({
      a: '2026-01-01',
      b: 'no',
      c: 15,
      d: 1000,
    });
  });
});

describe('a duplicate key', () => {
  it.each([
    ['{"groups":[],"groups":[]}', 'line 1, column 14', 'groups'],
    ['{"a":{"b":[1,{"c":1,"d":2,\n"c":3}]}}', 'line 2, column 1', 'a.b[1].c'],
    ['{"a":1,"\\u0061":2}', 'line 1, column 8', 'a'],
    ['{"a":"x","b":{"a":1},"a":{}}', 'line 1, column 22', 'a'],
    ['{"a":"{\\"b\\":1,","b":1,"b":2}', 'line 1, column 24', 'b'],
    ['[{"x":1},{"x":1,"x":1}]', 'line 1, column 17', '[1].x'],
    ['{"":1,"":2}', 'line 1, column 7', '[""]'],
    [`{"${'k'.repeat(40)}":1,"${'k'.repeat(40)}":2}`, 'column 47', '[<40 characters>]'],
  ])('is refused in JSON with its place: %s', (text, place, path) => {
    const read = () => parseConfigText(text, 'application/json');
    expect(read).toThrow(ConfigSyntaxError);
    expect(read).toThrow(place);
    expect(read).toThrow(`duplicate key. Remove one of the two values of ${path}.`);
  });

  it('is refused in YAML with its path', () => {
    const text = 'groups:\n  - name: a\n    limits: { rpm: 1, rpm: 2 }\n';
    expect(() => parseConfigText(text, 'text/yaml')).toThrow(
      'line 3, column 23: duplicate key. Remove one of the two values of groups[0].limits.rpm.',
    );
  });

  it.each(['{"a":1,"A":2}', '[{"a":1},{"a":1}]', '{"a":{"a":{"a":"a"}},"b":["a","a",":a"]}'])(
    'is not seen where there is none: %s',
    (text) => expect(parseConfigText(text, 'application/json')).toEqual(JSON.parse(text)),
  );
});

describe('a merge key of YAML', () => {
  it.each([
    ['a: &a { x: 1, y: 2 }\nb: { <<: *a, y: 3 }', { x: 1, y: 3 }],
    ['a: &a { x: 1, y: 2 }\nb: { y: 3, <<: *a }', { x: 1, y: 3 }],
    ['a: &a { x: 1 }\nc: &c { x: 2, z: 3 }\nb: { <<: [*a, *c] }', { x: 1, z: 3 }],
    ['a: &a { x: 1 }\nc: &c { <<: *a, y: 2 }\nb: { <<: *c, z: 3 }', { x: 1, y: 2, z: 3 }],
    ['b: { <<: { x: 1 }, y: 2 }', { x: 1, y: 2 }],
    ['l: &l [{ x: 1 }, { x: 2, y: 2 }]\nb: { <<: *l }', { x: 1, y: 2 }],
    ['a: &a { x: 1 }\nb: { "<<": *a }', { '<<': { x: 1 } }],
  ])('is resolved: %s', (text, b) => {
    expect(parseConfigText(text, 'text/yaml')).toMatchObject({ b });
    expect((parseConfigText(text, 'text/yaml') as { b: object }).b).toEqual(b);
  });

  it.each([
    ['a: { <<: 5 }', 'line 1, column 10'],
    ['a: &a [1]\nb: { <<: *a }', 'line 2, column 10'],
    ['a: &a { x: 1 }\nb: { <<: [*a, 5] }', 'line 2, column 10'],
  ])('is refused with its place where it merges no map: %s', (text, place) => {
    expect(() => parseConfigText(text, 'text/yaml')).toThrow(
      `${place}: the key << merges maps. Set it to an alias of a map`,
    );
  });

  it('is refused where a map merges itself, or is merged twice', () => {
    expect(() => parseConfigText('a: &a { <<: *a }', 'text/yaml')).toThrow('contains itself');
    const twice = 'a: &a { x: 1 }\nb: { <<: *a, <<: *a }';
    expect(() => parseConfigText(twice, 'text/yaml')).toThrow('line 2, column 14: duplicate key');
  });

  it('is refused where merges would write out too much', () => {
    const keys = Array.from({ length: 20_000 }, (_, at) => `k${at}: [1, 2]`).join(', ');
    const merges = Array.from({ length: 60 }, () => '{ <<: *a }').join(', ');
    const started = process.cpuUsage();
    expect(() => parseConfigText(`a: &a { ${keys} }\nb: [${merges}]`, 'text/yaml')).toThrow(
      'more than 1000000 values',
    );
    expect(process.cpuUsage(started).user).toBeLessThan(20_000_000);
  });
});
