// The directory's list of callers without a gateway key: of the last hour, and bounded.
import { runInDurableObject } from 'cloudflare:test';
import { expect, it } from 'vitest';
import type { KeylessCaller } from '../../../src/contract/reasons.ts';
import { KeylessList } from '../../../src/directory/reports.ts';
import { directoryOf } from '../../../src/env.ts';
import { env } from '../support/worker.ts';

const NOW = Date.parse('2026-11-28T10:00:30.000Z');
const HOUR_MS = 3_600_000;

function served(caller: string | null, calls: number, at = NOW): KeylessCaller {
  return { upstream: 'openai', caller, calls, last_at: new Date(at).toISOString() };
}

function withList<T>(run: (list: KeylessList) => T): Promise<T> {
  return runInDurableObject(directoryOf(env) as never, (_instance, { storage }) => {
    storage.sql.exec('DELETE FROM keyless_callers');
    return run(new KeylessList(storage.sql));
  });
}

it('calls of a caller add up over isolates and minutes', async () => {
  const listed = await withList((list) => {
    list.note([served('fp_1', 2, NOW - 600_000), served('fp_2', 1)]);
    list.note([served('fp_1', 3)]);
    return list.since(NOW - HOUR_MS);
  });
  expect(listed).toEqual([served('fp_1', 5), served('fp_2', 1)]);
});

it('a caller that has moved is gone an hour after its last call', async () => {
  const listed = await withList((list) => {
    list.note([served('fp_1', 2, NOW - HOUR_MS - 1)]);
    list.note([served('fp_2', 1)]);
    return list.since(0);
  });
  expect(listed).toEqual([served('fp_2', 1)]);
});

it('callers beyond the bound count together', async () => {
  const listed = await withList((list) => {
    list.note(Array.from({ length: 800 }, (_, n) => served(`fp_${n}`, 1)));
    return list.since(0);
  });
  expect(listed).toHaveLength(501);
  expect(listed[0]).toEqual(served(null, 300));
});
