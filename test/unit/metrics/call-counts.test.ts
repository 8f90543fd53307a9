// Calls of a pool are counted by key, upstream and model, within bounds: callers may make names of models up.
import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import type { CallCounts } from '../../../src/contract/history.ts';
import { CallsByKind, sumOfCalls } from '../../../src/history/points.ts';

const kind = (caller: string, model: string | null = 'gpt-4o', upstream = 'openai') => ({
  caller,
  upstream,
  model,
});

const NAME_LENGTH_MAX = 128;

describe('calls by kind', () => {
  it('add up, and are listed with the most first', () => {
    const counts = new CallsByKind(10);
    counts.add(kind('ci'), 1);
    counts.add(kind('web'), 2);
    counts.add(kind('ci'), 3);
    expect(counts.most(10)).toEqual([
      ['ci', 'openai', 'gpt-4o', 4],
      ['web', 'openai', 'gpt-4o', 2],
    ]);
    expect(counts.most(1)).toEqual([['ci', 'openai', 'gpt-4o', 4]]);
  });

  it('are apart by each of key, upstream and model, and without a model', () => {
    const counts = new CallsByKind(10);
    counts.add(kind('ci'), 1);
    counts.add(kind('web'), 1);
    counts.add(kind('ci', 'gpt-4.1'), 1);
    counts.add(kind('ci', null), 1);
    counts.add(kind('ci', 'gpt-4o', 'azure'), 1);
    expect(counts.most(10)).toHaveLength(5);
    expect(counts.most(10)).toContainEqual(['ci', 'openai', null, 1]);
  });

  it('go on to count the kinds they have when there is no room for others', () => {
    const counts = new CallsByKind(2);
    for (const caller of ['a', 'b', 'c', 'a', 'c']) counts.add(kind(caller), 1);
    expect(counts.most(10)).toEqual([
      ['a', 'openai', 'gpt-4o', 2],
      ['b', 'openai', 'gpt-4o', 1],
    ]);
  });

  it('have names of bounded length', () => {
    const counts = new CallsByKind(10);
    const long = 'x'.repeat(10 * NAME_LENGTH_MAX);
    counts.add(kind(long, long, long), 1);
    const cut = 'x'.repeat(NAME_LENGTH_MAX);
    expect(counts.most(10)).toEqual([[cut, cut, cut, 1]]);
  });
});

describe('the sum of counts', () => {
  it('adds up minutes, keeps those with the most calls, and changes none of them', () => {
    const minutes: CallCounts[] = [
      [
        ['ci', 'openai', 'a', 1],
        ['web', 'openai', null, 5],
      ],
      [['ci', 'openai', 'a', 2]],
    ];
    const before = structuredClone(minutes);
    expect(sumOfCalls(minutes)).toEqual([
      ['web', 'openai', null, 5],
      ['ci', 'openai', 'a', 3],
    ]);
    expect(sumOfCalls(minutes, 1)).toEqual([['web', 'openai', null, 5]]);
    expect(sumOfCalls([])).toEqual([]);
    expect(minutes).toEqual(before);
  });

  it('loses no call, whatever the order of minutes and kinds', () => {
    const name = fc.constantFrom('a', 'b', 'c');
    const row = fc.tuple(name, name, fc.option(name), fc.nat(1_000));
    fc.assert(
      fc.property(fc.array(fc.array(row)), (minutes) => {
        const sum = sumOfCalls(minutes);
        const callsIn = (counts: CallCounts) =>
          counts.reduce((all, [, , , calls]) => all + calls, 0);
        expect(callsIn(sum)).toBe(callsIn(minutes.flat()));
        expect(new Set(sum.map((each) => JSON.stringify(each.slice(0, 3)))).size).toBe(sum.length);
        const sorted = sum.map(([, , , calls]) => calls);
        expect(sorted).toEqual(sorted.toSorted((a, b) => b - a));
      }),
    );
  });
});
