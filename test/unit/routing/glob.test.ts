import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileGlobs, globsMayOverlap } from '../../../src/routing/glob.ts';

// A small alphabet with what is special to a RegExp or to shells, so that patterns often meet names.
const text = fc.string({ unit: fc.constantFrom('a', 'B', '/', '.', '?', '[', '^'), maxLength: 8 });
const glob = fc.string({ unit: fc.constantFrom('a', 'B', '/', '.', '[', '*', '*'), maxLength: 8 });

function oracle(pattern: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replace(/[^a-z]/gi, String.raw`\$&`));
  return new RegExp(`^${parts.join('.*')}$`, 'is');
}

describe('compileGlobs', () => {
  test.each([
    ['gpt-4o', 'gpt-4o', true],
    ['gpt-4o', 'gpt-4o-mini', false],
    ['GPT-4o*', 'gpt-4O-Mini', true],
    ['*', '', true],
    ['*', 'a/b', true],
    ['openrouter/*', 'openrouter/openai/gpt-4o', true],
    ['*haiku*', 'anthropic/claude-haiku-4', true],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['a*bc*c', 'abc', false],
    ['a.c', 'abc', false],
    ['m[1]?', 'm[1]?', true],
    ['@cf/meta/*', '@cf/meta/llama', true],
  ])('%s on %s: %s', (pattern, name, expected) => {
    expect(compileGlobs([pattern])(name)).toBe(expected);
  });

  test('no pattern matches nothing, and any of several is enough', () => {
    expect(compileGlobs([])('')).toBe(false);
    expect(compileGlobs(['x', 'b*', 'y'])('beta')).toBe(true);
  });

  test('agrees with a regular expression that escapes all but the star', () => {
    fc.assert(
      fc.property(glob, text, (pattern, name) => {
        expect(compileGlobs([pattern])(name)).toBe(oracle(pattern).test(name));
      }),
      { numRuns: 2_000 },
    );
  });

  test('a pattern of many stars does not make matching slow', () => {
    const matches = compileGlobs([`${'a*'.repeat(100)}b`]);
    expect(matches('a'.repeat(100_000))).toBe(false);
  });
});

describe('globsMayOverlap', () => {
  test.each([
    ['gpt-4o', 'GPT-4o', true],
    ['gpt-4o', 'gpt-4', false],
    ['gpt-*', 'gpt-4o', true],
    ['gpt-*', '*-mini', true],
    ['gpt-*', 'o1-*', false],
    ['*-mini', '*-nano', false],
    ['gpt-*-mini', 'gpt-4*', true],
  ])('%s and %s: %s', (a, b, expected) => {
    expect(globsMayOverlap(a, b)).toBe(expected);
    expect(globsMayOverlap(b, a)).toBe(expected);
  });

  test('is true exactly where a name exists that both match', () => {
    const names = [''];
    for (let at = 0; at < names.length; at += 1) {
      const name = names[at] ?? '';
      // Two patterns of 4 need no longer witness than both together.
      if (name.length < 8) names.push(`${name}a`, `${name}b`);
    }
    const short = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 4 });
    fc.assert(
      fc.property(short, short, (a, b) => {
        const [one, two] = [compileGlobs([a]), compileGlobs([b])];
        expect(globsMayOverlap(a, b)).toBe(names.some((name) => one(name) && two(name)));
      }),
      { numRuns: 1_000 },
    );
  });
});
