// Freezes the copy of the configuration in Workers KV, which isolates of other releases read when they start.
import { expect, it } from 'vitest';
import { goldenFile, goldenText } from '../../support/golden.ts';
import { configure, env, until } from '../support/worker.ts';

it('freezes the copy in Workers KV', async () => {
  await configure({ groups: [{ name: 'copied' }] });
  const store = env.SNAPSHOTS as unknown as KVNamespace;
  const namesOf = async () => (await store.list()).keys.map(({ name }) => name);
  await until(async () => expect(await namesOf()).not.toEqual([]));
  const copies = (await namesOf()).map(async (name) => {
    const { config, ...rest } = await store.get<{ config: object }>(name, 'json').then(known);
    return [name, { ...kindsOf(rest), config: Object.keys(config).toSorted() }] as const;
  });
  await expect(goldenText(Object.fromEntries(await Promise.all(copies)))).toMatchFileSnapshot(
    goldenFile('storage-kv'),
  );
});

function known<Value>(value: Value | null): Value {
  if (value === null) throw new Error('no copy');
  return value;
}

/** Replaces values by their types. */
function kindsOf(fields: object): object {
  const kinds = Object.entries(fields).map(([name, value]) => [
    name,
    Array.isArray(value) ? 'array' : typeof value,
  ]);
  return Object.fromEntries(kinds);
}
