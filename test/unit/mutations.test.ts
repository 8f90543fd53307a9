import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { MUTATIONS } from '../../scripts/mutations/list.ts';

/** They run for minutes, and seldom; whoever changes the core learns here that one no longer fits. */
test.each(MUTATIONS)('the text that a mutation changes is there once: $name', async (mutation) => {
  const source = await readFile(`src/core/${mutation.file}`, 'utf8');
  expect(source.split(mutation.find)).toHaveLength(2);
  expect(mutation.replace).not.toBe(mutation.find);
});

test('no two mutations have one name', () => {
  const names = MUTATIONS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});
