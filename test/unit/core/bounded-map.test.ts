import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BoundedMap, BoundedSet } from '../../../src/core/parts/bounded-map.ts';

/** The newest last; what does not fit is cut off in front. */
class NaiveMap {
  entries: (readonly [key: number, value: number])[] = [];
  readonly max: number;

  constructor(max: number) {
    this.max = max;
  }

  set(key: number, value: number): void {
    const others = this.entries.filter(([each]) => each !== key);
    this.entries = [...others, [key, value] as const].slice(-this.max);
  }
}

test('a new entry takes the place of the oldest', () => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.set('c', 3);
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([undefined, 2, 3]);
  expect(map.size).toBe(2);
});

test('to set an entry again makes it the newest, and costs no other its place', () => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.set('a', 3);
  expect([map.get('a'), map.get('b')]).toEqual([3, 2]);
  map.set('c', 4);
  expect([map.has('a'), map.has('b'), map.has('c')]).toEqual([true, false, true]);
});

test('to look an entry up does not make it younger', () => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.get('a');
  map.has('a');
  map.set('c', 3);
  expect(map.has('a')).toBe(false);
});

test('a set forgets what was added longest ago', () => {
  const set = new BoundedSet<string>(2);
  for (const item of ['a', 'b', 'a', 'c']) set.add(item);
  expect(['a', 'b', 'c'].filter((item) => set.has(item))).toEqual(['a', 'c']);
});

test('it holds what a list cut off in front holds', () => {
  const changeArb = fc.record({ key: fc.nat(6), value: fc.nat() });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(changeArb), (max, changes) => {
      const map = new BoundedMap<number, number>(max);
      const naive = new NaiveMap(max);
      for (const { key, value } of changes) {
        map.set(key, value);
        naive.set(key, value);
        expect(map.size).toBe(naive.entries.length);
        for (const [each, held] of naive.entries) expect(map.get(each)).toBe(held);
      }
    }),
  );
});
