import { expect, it } from 'vitest';
import { mapConcurrently } from '../../../src/runtime/async.ts';

it('begins so many at once, one more when one is done, and keeps their order', async () => {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const all = mapConcurrently(['a', 'b', 'c', 'd'], 2, async (name) => {
    begun.push(name);
    await new Promise<void>((resolve) => ends.set(name, resolve));
    return name.toUpperCase();
  });
  expect(begun).toEqual(['a', 'b']);
  ends.get('b')?.();
  await expect.poll(() => begun).toEqual(['a', 'b', 'c']);
  ends.get('c')?.();
  await expect.poll(() => begun).toEqual(['a', 'b', 'c', 'd']);
  ends.get('d')?.();
  ends.get('a')?.();
  expect(await all).toEqual(['A', 'B', 'C', 'D']);
});

it('fails with the first that fails', async () => {
  const all = mapConcurrently([1, 2, 3], 2, async (item) => {
    if (item === 2) throw new Error('away');
    return item;
  });
  await expect(all).rejects.toThrow('away');
});

it('has nothing to do for no items', async () => {
  expect(await mapConcurrently([], 8, async () => expect.unreachable())).toEqual([]);
});
