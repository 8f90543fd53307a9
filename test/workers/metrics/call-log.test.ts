/** The log that a pool keeps of its calls: which have a line, how they are found, and what it costs. */
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { CallQuery, StoredCall } from '../../../src/contract/calls.ts';
import type { RequestFields } from '../../support/requests.ts';
import { SERVED } from '../../../src/core/words/signal.ts';
import { CALLS_A_ROW } from '../../../src/group/observe/call-log.ts';
import { CALL_ROWS_MAX } from '../../../src/group/observe/rows.ts';
import {
  crashPool,
  heldBy,
  inside,
  NO_COOLDOWN,
  pool,
  queueUp,
  request,
  resetPool,
  take,
  untilWrittenEmpty,
} from '../support/pool.ts';
import { passTime, resumeTime, stopTime } from '../support/time.ts';
import { configure, until } from '../support/worker.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Calls that went well have a line too, some hundred in a minute. */
const ALL = { sample: 1, days: 1 };
const NONE = { sample: 0 };

const LOGS: Record<string, object> = {
  ended: NONE,
  names: ALL,
  sampled: { sample: 0.3, days: 1 },
  lone: ALL,
  refused: NONE,
  never: NONE,
  off: { days: 0, sample: 1 },
  rows: ALL,
  minutes: ALL,
  reset: ALL,
  crash: ALL,
  flush: ALL,
  kept: { sample: 1, days: 2 },
  paged: ALL,
  storm: NONE,
  taken: ALL,
  bytes: ALL,
  busy: { sample: 1 },
  long: ALL,
};

beforeAll(async () => {
  await configure({
    groups: Object.entries(LOGS).map(([name, log]) => ({
      name,
      match: { models: [name] },
      limits: { max_concurrency: name === 'refused' || name === 'never' ? 0 : 4 },
      queue: { max_length: 0 },
      holds: NO_COOLDOWN,
      log,
    })),
  });
});

async function call(
  name: string,
  ticket: string,
  fields: RequestFields = {},
  notes = {},
): Promise<void> {
  const { lease } = await take(name, ticket, fields);
  await lease.release('success', 200, undefined, true, notes);
}

async function find(name: string, filter: Partial<CallQuery> = {}): Promise<StoredCall[]> {
  const all = { fromMs: 0, toMs: Date.now() + 1, limit: 100 };
  const { calls } = await pool(name).calls({ ...all, ...filter });
  return [...calls];
}

const leasesIn = (calls: readonly StoredCall[]): string[] => calls.map(({ lease }) => lease);

/** Rows that the statements of a pool write in a table, from now on. */
async function countRows(name: string): Promise<() => Promise<Record<string, number>>> {
  const counts: Record<string, number> = {};
  await inside(name, (_instance, { storage }) => {
    const { sql } = storage;
    const exec = sql.exec.bind(sql);
    sql.exec = ((query: string, ...values: SqlStorageValue[]) => {
      const cursor = exec(query, ...values);
      const table = /^\s*INSERT (?:OR REPLACE )?INTO (\w+)/.exec(query)?.[1];
      if (table !== undefined) counts[table] = (counts[table] ?? 0) + cursor.rowsWritten;
      return cursor;
    }) as typeof sql.exec;
  });
  return () => Promise.resolve({ ...counts });
}

async function rowsOf(name: string): Promise<number> {
  return inside(
    name,
    (_instance, { storage }) =>
      storage.sql.exec<{ n: number }>('SELECT count(*) AS n FROM call_log').one().n,
  );
}

describe('a line', () => {
  it('is of each call that was refused, retried, slow or dear, and of no other', async () => {
    await call('ended', 'well');
    await call('ended', 'again', { attempt: 2 });
    await call('ended', 'sent-twice', {}, { sent: 2 });
    const wrong = await take('ended', 'wrong');
    await wrong.lease.release('success', 400);
    const slow = await take('ended', 'slow');
    passTime(30_000);
    await slow.lease.release('success', 200);
    const unused = await take('ended', 'unused');
    await unused.lease.release('unused', null);
    const refused = await take('ended', 'refused', { agent: 'run' });
    await refused.lease.report({ ...SERVED, kind: 'requests', retryAfterMs: 60_000 }, false);
    await refused.lease.release('failed', 429);
    const rejected = await pool('ended').acquire(request('ended', 'rejected'));
    expect(rejected.kind).toBe('rejected');
    const kept = (await find('ended')).map((line) => [line.lease, line.kept_for, line.outcome]);
    expect(kept).toEqual([
      ['rejected.1', 'refused', 'rejected'],
      ['refused.1', 'refused', 'failed'],
      ['slow.1', 'slow', 'success'],
      ['wrong.1', 'refused', 'success'],
      ['sent-twice.1', 'retried', 'success'],
      ['again.2', 'retried', 'success'],
    ]);
    expect((await find('ended', { leases: ['refused'] }))[0]).toMatchObject({
      agent: 'run',
      tenant: 'caller',
      key: 'caller',
      upstream: 'openai',
      model: 'gpt-4o',
      upstream_status: 429,
      upstream_said: 'requests',
      sent: 1,
    });
    expect((await find('ended', { outcome: 'rejected' }))[0]?.rejection).toBe('queue_full');
  });

  it('is found by each name, exactly, and through one search', async () => {
    const fields = { tenant: 'alice', caller: 'key-1', agent: 'run-7', model: 'claude-x' };
    await call('names', 'mine', fields, { requestId: 'req_01"\\é' });
    await call('names', 'other', { tenant: 'bob' }, { requestId: 'req_2' });
    const filters: Partial<CallQuery>[] = [
      { leases: ['mine.1'] },
      { leases: ['mine'] },
      { tenant: 'alice' },
      { key: 'key-1' },
      { agent: 'run-7' },
      { model: 'claude-x' },
      { requestId: 'req_01"\\é' },
      ...['mine.1', 'mine', 'alice', 'key-1', 'run-7', 'claude-x', 'req_01"\\é'].map((one) => ({
        anyOf: [one],
      })),
    ];
    for (const isWritten of [false, true]) {
      if (isWritten) await pool('names').flush();
      for (const filter of filters) {
        expect([filter, leasesIn(await find('names', filter))]).toEqual([filter, ['mine.1']]);
      }
      expect(await find('names', { tenant: 'ali' })).toEqual([]);
      expect(await find('names', { anyOf: ['%'] })).toEqual([]);
      expect(leasesIn(await find('names'))).toEqual(['other.1', 'mine.1']);
    }
  });

  it('is found by a name that is longer than what is kept of it', async () => {
    const agent = `run "${'é'.repeat(300)}`;
    await call('long', 'mine', { agent, model: 'm'.repeat(400) });
    for (const isWritten of [false, true]) {
      if (isWritten) await pool('long').flush();
      for (const filter of [{ agent }, { anyOf: [agent] }, { model: 'm'.repeat(400) }]) {
        expect(leasesIn(await find('long', filter))).toEqual(['mine.1']);
      }
      expect(await find('long', { agent: agent.slice(0, 100) })).toEqual([]);
    }
  });

  it('is of a part of the calls that went well: of all attempts of one, or none', async () => {
    for (let ticket = 0; ticket < 200; ticket += 1) await call('sampled', `s-${ticket}`);
    const lines = await find('sampled', { limit: 1_000 });
    expect(lines.length).toBeGreaterThan(30);
    expect(lines.length).toBeLessThan(90);
    expect(new Set(lines.map((line) => line.kept_for))).toEqual(new Set(['sample']));
  });

  it('names what its pool remembers without one, where it is looked for by name', async () => {
    passTime(MINUTE_MS);
    await call('ended', 'forgotten');
    const open = await take('ended', 'open');
    expect(await find('ended', { anyOf: ['forgotten.1'] })).toMatchObject([{ kept_for: 'recent' }]);
    expect(await find('ended', { leases: ['open'] })).toMatchObject([{ outcome: 'in_flight' }]);
    expect(leasesIn(await find('ended'))).not.toContain('forgotten.1');
    await open.lease.release('success', 200);
  });

  it('of a call that an earlier instance granted says what is known', async () => {
    const granted = await take('taken', 'lives', { agent: 'run' });
    await resetPool('taken');
    passTime(5_000);
    const held = { ...heldBy('taken', granted, { agent: 'run' }), heldMs: 5_000 };
    await pool('taken').release('lives.1', 'success', 200, undefined, held, { requestId: 'r-1' });
    const [line] = await find('taken', { anyOf: ['r-1'] });
    expect(line).toMatchObject({ lease: 'lives.1', agent: 'run', held_ms: 5_000, sent: 1 });
    expect(line).not.toHaveProperty('waited_ms');
  });
});

describe('what it costs', () => {
  it('is no row for lone calls: their lines ride on the bound, until there are enough for one', async () => {
    const counts = await countRows('lone');
    for (let ticket = 0; ticket < CALLS_A_ROW - 1; ticket += 1) {
      await call('lone', `l-${ticket}`);
      await untilWrittenEmpty('lone');
      passTime(MINUTE_MS);
    }
    expect((await counts())['call_log'] ?? 0).toBe(0);
    await resetPool('lone');
    expect(await find('lone')).toHaveLength(CALLS_A_ROW - 1);
    await call('lone', 'last');
    await untilWrittenEmpty('lone');
    passTime(MINUTE_MS);
    await pool('lone').status();
    await until(async () => expect(await rowsOf('lone')).toBe(1));
    await resetPool('lone');
    expect(await find('lone')).toHaveLength(CALLS_A_ROW);
  });

  it('is a fortieth of a row for each of many, and all of them are found', async () => {
    const counts = await countRows('rows');
    for (let ticket = 0; ticket < 240; ticket += 1) await call('rows', `r-${ticket}`);
    passTime(MINUTE_MS);
    await pool('rows').status();
    await until(async () => expect((await counts())['call_log']).toBeGreaterThan(0));
    expect((await counts())['call_log']).toBeLessThanOrEqual(240 / CALLS_A_ROW);
    expect(new Set(leasesIn(await find('rows', { limit: 1_000 }))).size).toBe(240);
  });

  it('is at most one row a minute for few calls, even if all end at once', async () => {
    stopTime();
    onTestFinished(resumeTime);
    for (let minute = 0; minute < 4; minute += 1) {
      for (let ticket = 0; ticket < 45; ticket += 1) await call('minutes', `m-${minute}-${ticket}`);
      passTime(MINUTE_MS);
      await pool('minutes').status();
    }
    await untilWrittenEmpty('minutes');
    await resetPool('minutes');
    expect(await rowsOf('minutes')).toBeLessThanOrEqual(4);
    expect(await find('minutes', { limit: 1_000 })).toHaveLength(180);
  });

  it('is bounded in a storm of refusals, and so is what they are found by', async () => {
    const held = await Promise.all(['a', 'b', 'c', 'd'].map((each) => take('storm', each)));
    const counts = await countRows('storm');
    const minute = () => Math.floor(Date.now() / MINUTE_MS);
    const first = minute();
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(
        Array.from({ length: 50 }, (_, each) =>
          pool('storm').acquire(request('storm', `${round}-${each}`)),
        ),
      );
      await pool('storm').status();
    }
    await until(async () => expect((await counts())['call_log']).toBeGreaterThan(0));
    const rowsMax = 10 * (minute() - first + 1);
    expect((await counts())['call_log']).toBeLessThanOrEqual(rowsMax);
    const lines = await find('storm', { limit: 5_000 });
    expect(lines.length).toBeGreaterThan(100);
    const bytes = await inside(
      'storm',
      (_instance, { storage }) =>
        storage.sql.exec<{ sum: number }>('SELECT sum(length(data)) AS sum FROM call_log').one()
          .sum,
    );
    expect(bytes).toBeLessThanOrEqual(rowsMax * 33_000);
    for (const { lease } of held) await lease.release('unused', null);
  });

  it('is a row of the sample a minute where a week is kept, and what went wrong has a line besides', async () => {
    const first = Math.floor(Date.now() / MINUTE_MS);
    for (let ticket = 0; ticket < 100; ticket += 1) await call('busy', `b-${ticket}`);
    await call('busy', 'again', { attempt: 2 });
    const minutes = Math.floor(Date.now() / MINUTE_MS) - first + 1;
    const lines = await find('busy', { limit: 1_000 });
    const sample = lines.filter((line) => line.kept_for === 'sample');
    expect(sample.length).toBeGreaterThanOrEqual(CALLS_A_ROW);
    expect(sample.length).toBeLessThanOrEqual(minutes * CALLS_A_ROW);
    expect(leasesIn(lines)).toContain('again.2');
    passTime(MINUTE_MS);
    const fromMs = Date.now();
    await call('busy', 'later');
    expect(leasesIn(await find('busy', { fromMs }))).toEqual(['later.1']);
  });

  it('is a row in 15 s at the most where a pool grants nothing, however many it refuses', async () => {
    await pool('never').status();
    const counts = await countRows('never');
    for (let ticket = 0; ticket < 30; ticket += 1) {
      await pool('never').acquire(request('never', `n-${ticket}`));
      passTime(1_000);
      // Longer than what nobody waits for is gathered: else all of them would come in one row.
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    const { bound = 0, history = 0, call_log = 0 } = await counts();
    // Besides the first one a row of the history, where a minute ends meanwhile, with one of its quarter.
    expect(bound + history + call_log).toBeLessThanOrEqual(1 + 2 + 2);
    expect(await find('never')).toHaveLength(30);
  });

  it('is nothing where it is off', async () => {
    const counts = await countRows('off');
    for (let ticket = 0; ticket < 100; ticket += 1) await call('off', `o-${ticket}`);
    passTime(MINUTE_MS);
    await untilWrittenEmpty('off');
    await pool('off').flush();
    expect((await counts())['call_log'] ?? 0).toBe(0);
    expect(await find('off')).toEqual([]);
    await resetPool('off');
    expect(await rowsOf('off')).toBe(0);
  });

  it('is a bounded row, however long names are', async () => {
    const long = '\u0001'.repeat(5_000);
    for (let ticket = 0; ticket < 60; ticket += 1) {
      const fields = { tenant: long, agent: long, model: long, caller: long };
      await call('bytes', `b-${ticket}`, fields, { requestId: long });
    }
    await pool('bytes').flush();
    const longest = await inside(
      'bytes',
      (_instance, { storage }) =>
        storage.sql.exec<{ most: number }>('SELECT max(length(data)) AS most FROM call_log').one()
          .most,
    );
    expect(longest).toBeGreaterThan(10_000);
    expect(longest).toBeLessThanOrEqual(33_000);
  });
});

describe('what is on disk', () => {
  it('has the refusals of a pool that grants nothing, though it holds nothing', async () => {
    const answer = await pool('refused').acquire(request('refused', 'never'));
    expect(answer.kind).toBe('rejected');
    await until(async () => {
      const rows = await inside('refused', (_instance, { storage }) =>
        storage.sql.exec<{ data: string }>('SELECT data FROM bound').toArray(),
      );
      expect(rows.some(({ data }) => data.includes('never.1'))).toBe(true);
    });
    await crashPool('refused');
    expect(leasesIn(await find('refused', { leases: ['never'] }))).toEqual(['never.1']);
  });

  it('has all that waited for a later write, once the process ends', async () => {
    const open = await take('flush', 'open');
    await call('flush', 'short');
    await pool('flush').flush();
    await crashPool('flush');
    open.lease[Symbol.dispose]();
    expect(leasesIn(await find('flush', { leases: ['short'] }))).toEqual(['short.1']);
    const { gaps } = await pool('flush').history(0, Date.now() + 1, MINUTE_MS);
    expect(gaps).toEqual([]);
  });

  it('is told once, though the bound has it still', async () => {
    for (let ticket = 0; ticket < 3; ticket += 1) await call('crash', `c-${ticket}`);
    await untilWrittenEmpty('crash');
    await inside('crash', (_instance, { storage }) => {
      const line = { lease: 'c-0.1', tenant: 't', key: 'k', upstream: 'u', outcome: 'success' };
      const calls = [{ ...line, at: Date.now(), kept_for: 'sample' }];
      storage.sql.exec(
        'INSERT INTO call_log (slot, sequence, at, until, data) VALUES (0, 0, ?, ?, ?)',
        Date.now(),
        Date.now(),
        JSON.stringify(calls),
      );
    });
    await crashPool('crash');
    expect(leasesIn(await find('crash'))).toEqual(['c-0.1']);
  });

  it('can be found for as long as it is kept, and no longer', async () => {
    await call('kept', 'old');
    await pool('kept').flush();
    expect(await find('kept')).toHaveLength(1);
    passTime(2 * DAY_MS + MINUTE_MS);
    expect(await find('kept')).toEqual([]);
    await call('kept', 'new');
    expect(leasesIn(await find('kept'))).toEqual(['new.1']);
  });

  it('is a ring, which begins anew where it ends', async () => {
    await call('reset', 'first');
    await pool('reset').flush();
    const laps = 3 * CALL_ROWS_MAX + 5;
    await inside('reset', (_instance, { storage }) => {
      const { sql } = storage;
      const base = Date.now() - CALL_ROWS_MAX;
      for (let sequence = laps - CALL_ROWS_MAX; sequence < laps; sequence += 1) {
        const at = base + sequence - (laps - CALL_ROWS_MAX);
        const line = { at, lease: `n${sequence}.1`, tenant: 't', key: 'k', upstream: 'u' };
        sql.exec(
          'INSERT OR REPLACE INTO call_log (slot, sequence, at, until, data) VALUES (?, ?, ?, ?, ?)',
          sequence % CALL_ROWS_MAX,
          sequence,
          at,
          at,
          JSON.stringify([{ ...line, outcome: 'success', kept_for: 'sample' }]),
        );
      }
    });
    await crashPool('reset');
    // What comes at once may still meet the instance that ends.
    await until(() => pool('reset').status());
    passTime(1_000);
    await call('reset', 'after');
    await pool('reset').flush();
    expect(await rowsOf('reset')).toBe(CALL_ROWS_MAX);
    const found = await pool('reset').calls({ fromMs: 0, toMs: Date.now() + 1, limit: 3 });
    expect(leasesIn(found.calls)).toEqual(['after.1', `n${laps - 1}.1`, `n${laps - 2}.1`]);
    // A search reads so much and no more, and goes on where it ended.
    const seen: string[] = [];
    let searches = 0;
    let toMs = Date.now() + 1;
    for (; searches < 50 && toMs > 0; searches += 1) {
      const part = await pool('reset').calls({ fromMs: 0, toMs, limit: 10, tenant: 't' });
      seen.push(...leasesIn(part.calls));
      toMs = seen.length > 200 ? 0 : part.doneTo;
    }
    expect(new Set(seen).size).toBe(seen.length);
    let rare = { doneTo: Date.now() + 1, calls: [] as readonly StoredCall[] };
    let rounds = 0;
    const last = `n${laps - CALL_ROWS_MAX + 1}`;
    while (rare.calls.length === 0 && rare.doneTo > 0 && rounds < 20) {
      const { doneTo: before } = rare;
      rare = await pool('reset').calls({ fromMs: 0, toMs: before, limit: 10, leases: [last] });
      rounds += 1;
    }
    expect(leasesIn(rare.calls)).toEqual([`${last}.1`]);
    expect(rounds).toBeGreaterThan(5);
  });

  it('gives all calls of one instant at once, and none twice', async () => {
    const at = Date.now();
    await inside('paged', (_instance, { storage }) => {
      for (let sequence = 0; sequence < 5; sequence += 1) {
        const calls = Array.from({ length: 4 }, (_, index) => ({
          at: at + Math.floor(sequence / 2),
          lease: `p${sequence}-${index}.1`,
          tenant: 't',
          key: 'k',
          upstream: 'u',
          outcome: 'success',
          kept_for: 'sample',
        }));
        storage.sql.exec(
          'INSERT INTO call_log (slot, sequence, at, until, data) VALUES (?, ?, ?, ?, ?)',
          sequence,
          sequence,
          calls[0]?.at ?? 0,
          calls[0]?.at ?? 0,
          JSON.stringify(calls),
        );
      }
    });
    await crashPool('paged');
    passTime(1_000);
    const pages: number[] = [];
    for (let toMs = Date.now(); toMs > at;) {
      const { calls, doneTo } = await pool('paged').calls({ fromMs: at, toMs, limit: 1 });
      pages.push(calls.length);
      toMs = doneTo;
    }
    expect(pages).toEqual([4, 8, 8]);
  });
});

it('waits for the slots of others have a line with what for', async () => {
  await configure({
    groups: [
      {
        name: 'queued',
        match: { models: ['queued'] },
        limits: { max_concurrency: 1 },
        holds: NO_COOLDOWN,
        log: { sample: 1, slow_ms: 1_000 },
      },
    ],
  });
  const { lease } = await take('queued', 'first');
  const { answer } = await queueUp('queued', 'second');
  passTime(2_000);
  await lease.release('success', 200);
  const second = await answer;
  if (second.kind !== 'granted') throw new Error(second.kind);
  await second.lease.release('success', 200);
  expect((await find('queued', { leases: ['second'] }))[0]).toMatchObject({
    waited_for: 'slots',
    kept_for: 'slow',
  });
});
