// The directory's memory of whose keys are, which isolates ask that see a key for the first time.
import { runInDurableObject } from 'cloudflare:test';
import { expect, it } from 'vitest';
import { AccountList } from '../../src/directory/reports.ts';
import { directoryOf } from '../../src/env.ts';
import { env } from './support/worker.ts';

it('a key is remembered, as it was noted last, until it is forgotten', async () => {
  const directory = directoryOf(env);
  expect(await directory.accountOf('openai auto fp_1')).toBeNull();
  await directory.noteAccount('openai auto fp_1', 'acct_1');
  await directory.noteAccount('openai auto fp_1', 'acct_2');
  expect(await directory.accountOf('openai auto fp_1')).toBe('acct_2');
  await directory.noteAccount('openai auto fp_1', null);
  expect(await directory.accountOf('openai auto fp_1')).toBeNull();
});

it('what was noted longest ago makes room', async () => {
  const kept = await runInDurableObject(directoryOf(env) as never, (_instance, { storage }) => {
    const list = new AccountList(storage.sql, 20);
    const keys = Array.from({ length: 25 }, (_, n) => `key ${n}`);
    for (const [n, key] of keys.entries()) list.note(key, 'acct_1', n);
    list.note('key 5', 'acct_1', 100);
    list.note('key 25', 'acct_1', 101);
    return keys.filter((key) => list.find(key) !== null);
  });
  expect(kept).toHaveLength(19);
  expect(kept).toContain('key 5');
  expect(kept).not.toContain('key 6');
});
