// A database of release 0.1.0, which kept a row for each lease, is taken over once. What that release wrote is
// written out here, and nothing of it is imported.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import {
  crashPool,
  define,
  heldBy,
  inside,
  nothingLeaks,
  passAwake,
  pool,
  storedBound,
  tables,
} from '../support/pool.ts';
import { stopTime } from '../support/time.ts';

const MANY = 20_000;

beforeAll(stopTime);

afterAll(nothingLeaks);

/** A row of a lease; fields in the order in which they were written. */
function oldRow(ticket: string, more: object = {}): string {
  return JSON.stringify({
    ticket,
    id: `${ticket}.1`,
    holder: {
      tenant: 'acme',
      caller: 'fp_000000000000000000000000',
      agent: 'run-1',
      upstream: 'openai',
      model: 'gpt-4o',
    },
    lane: 'high',
    slots: 1,
    grantedAt: Date.now() - 60_000,
    phase: 'held',
    extendedUntil: null,
    coolingUntil: null,
    ...more,
  });
}

const NOTHING_LEARNED = {
  slots: null,
  mode: 'tracking',
  lastCutAt: 0,
  lastCutBy: null,
  lastRiseAt: 0,
  step: 1,
  servedSinceProbe: 0,
  servedBeforeProbe: 10,
  isRiseProven: false,
  evidence: {
    servedSlots: 0,
    servedAt: 0,
    moreSlots: 0,
    moreSeen: 0,
    refusedAt: 0,
    refusal: null,
  },
};

const CLOSED = {
  phase: 'closed',
  results: [],
  openedAt: 0,
  openUntil: 0,
  openings: 0,
  probes: [],
  served: 0,
};

/** The controls of a pool that has used 40 requests of the day, spent money, and was told to wait. */
function oldMemory(): Readonly<Record<string, string>> {
  const now = Date.now();
  const month = Date.UTC(new Date(now).getUTCFullYear(), new Date(now).getUTCMonth());
  const beganAt = { hour: now - (now % 3_600_000), day: now - (now % 86_400_000), month };
  const spent = { usd: { hour: 1, day: 2, month: 3 }, beganAt };
  const model = { model: 'gpt-4o', inputFactor: 1.5, inputSamples: 9 };
  return {
    controls: JSON.stringify({
      rates: {
        buckets: {},
        windows: { rpd: { bins: [[Math.floor(now / 1_800_000), 40]] } },
      },
      ceiling: { ...NOTHING_LEARNED, lastProbeAt: now },
      pause: { until: now + 600_000, notedAt: now, openMs: 0 },
      breaker: CLOSED,
      lagSeenAt: 0,
      spend: { total: spent, reservedUsd: 0.25 },
    }),
    tallies: JSON.stringify({
      factors: { models: [{ ...model, outputMean: 40, outputSamples: 9 }] },
      keys: [{ id: 'fp_1', ...spent }],
      agents: [],
    }),
    heartbeat: String(now - 5_000),
  };
}

/** Puts a pool's database back to what that release left. */
function putBack(name: string, rows: readonly string[], boot = ''): Promise<void> {
  const memory = oldMemory();
  return inside(name, (_instance, { storage: { sql } }) => {
    sql.exec('DROP TABLE bound');
    sql.exec(
      'CREATE TABLE lease (id TEXT PRIMARY KEY, boot TEXT NOT NULL, data TEXT NOT NULL) WITHOUT ROWID',
    );
    for (const row of rows) {
      sql.exec(`INSERT INTO lease (id, boot, data) VALUES (? ->> 'id', ?, ?)`, row, boot, row);
    }
    for (const [key, value] of Object.entries(memory)) {
      sql.exec('INSERT OR REPLACE INTO memory (key, value) VALUES (?, ?)', key, value);
    }
  });
}

const BUDGET = { per_hour: null, per_day: 10, per_month: null, fallback_price: null };
const LIMITS = { max_concurrency: 8, rpd: 100, budget_usd: BUDGET };

/** A lease by an answer of that release. */
function held(ticket: string) {
  return { leaseId: `${ticket}.1`, attachment: Date.now() * 1_000 };
}

it('leases are known by their ids, and what was used and learned is kept', async () => {
  await define('kept', 8, { limits: LIMITS });
  const holder = { caller: 'fp_1', agent: null, upstream: 'openai', model: null };
  await putBack('kept', [
    oldRow('a'),
    oldRow('wide', { slots: 2, extendedUntil: Date.now() + 5_000, extensions: 2 }),
    oldRow('revoked', { phase: 'revoking' }),
    oldRow('cooling', { phase: 'cooling', coolingUntil: Date.now() + 10_000 }),
    oldRow('nested', { slots: 0, nested: { in: 'wide.1', slots: 1 } }),
    oldRow('first', { holder, lane: undefined, slots: undefined }),
  ]);
  await crashPool('kept');
  const status = await pool('kept').status();
  expect(status).toMatchObject({ in_use: 5, cooling: 1, unclaimed: 0, paused: false });
  expect(status.rates).toMatchObject({ rpd: { limit: 100, left: 60 } });
  expect(status.spend).toMatchObject({ day_usd: 2.25, day_usd_by_key: { fp_1: 2 } });
  expect(Date.parse(status.paused_until ?? '')).toBe(Date.now() + 600_000);
  const leases = await pool('kept').leases();
  expect(leases).toHaveLength(6);
  const found = Object.fromEntries(leases.map((lease) => [lease.id, lease]));
  expect(found).toMatchObject({
    'a.1': { lane: 'high', slots: 1, state: 'held', tenant: 'acme', agent: 'run-1' },
    'wide.1': { slots: 2, state: 'held' },
    'revoked.1': { state: 'revoking' },
    'cooling.1': { state: 'cooling' },
    'nested.1': { slots: 0 },
    'first.1': { tenant: 'fp_1', lane: 'normal', slots: 1 },
  });
  expect(await tables('kept')).toEqual([
    'bound',
    'call_log',
    'cost',
    'history',
    'marker',
    'memory',
  ]);
  // Six slots, one of which counts for the nested call as well.
  expect(await storedBound('kept')).toMatchObject({ mark: 7, held: 7, ended: ['revoked.1'] });
  await pool('kept').release('a.1', 'unused', null);
  expect(await pool('kept').resume(heldBy('kept', held('cooling')))).toMatchObject({
    kind: 'gone',
  });
  for (const ticket of ['wide', 'revoked', 'nested', 'first']) {
    await pool('kept').release(`${ticket}.1`, 'unused', null);
  }
  await passAwake('kept', 10_000);
  expect(await pool('kept').status()).toMatchObject({ in_use: 0, cooling: 0, unclaimed: 0 });
});

it('twenty thousand leases are there, after a second reset too, with all their holders', async () => {
  await define('many', MANY);
  const rows = Array.from({ length: MANY }, (_, at) => oldRow(`t${at}`));
  await putBack('many', rows);
  await crashPool('many');
  expect(await pool('many').status()).toMatchObject({ in_use: MANY, unclaimed: 0 });
  const { mark = 0 } = (await storedBound('many')) ?? {};
  expect(mark).toBeGreaterThanOrEqual(MANY);
  const holders = Array.from({ length: MANY }, (_, at) => held(`t${at}`));
  const quarter = MANY / 4;
  const resumed = await inside('many', async (instance) => {
    // By a Worker of that release, which tells no more of its lease.
    await Promise.all(
      holders.slice(0, quarter).map(({ leaseId }) => instance.release(leaseId, 'unused', null)),
    );
    const asked = holders.slice(quarter, 2 * quarter);
    const answers = await Promise.all(asked.map((lease) => instance.resume(heldBy('many', lease))));
    return answers.map((answer) => {
      if (answer.kind !== 'granted') throw new Error(answer.kind);
      return { leaseId: answer.leaseId, attachment: answer.attachment };
    });
  });
  expect(await pool('many').status()).toMatchObject({ in_use: 3 * quarter, resurrected_total: 0 });
  await crashPool('many');
  const { unclaimed: orphaned } = await pool('many').status();
  expect(orphaned).toBeGreaterThanOrEqual(3 * quarter);
  // Those that have resumed, and those that the instance before heard nothing of.
  const others = holders.slice(2 * quarter);
  await inside('many', async (instance) => {
    const back = [...resumed, ...others.slice(0, quarter)];
    await Promise.all(back.map((lease) => instance.resume(heldBy('many', lease))));
    await Promise.all(
      others
        .slice(quarter)
        .map((lease) =>
          instance.release(lease.leaseId, 'unused', null, undefined, heldBy('many', lease)),
        ),
    );
  });
  expect(await pool('many').status()).toMatchObject({
    in_use: 2 * quarter,
    unclaimed: orphaned - 3 * quarter,
    resurrected_total: 0,
  });
  await inside('many', async (instance) => {
    const ids = (await instance.leases()).map(({ id }) => id);
    await Promise.all(ids.map((id) => instance.release(id, 'unused', null)));
  });
  await passAwake('many', LEASE_TTL_MS);
});

it('leases of another process died with it', async () => {
  await define('boot', 8, { limits: LIMITS });
  await putBack('boot', [oldRow('a')], 'another');
  await crashPool('boot');
  const status = await pool('boot').status();
  expect(status).toMatchObject({ in_use: 0, unclaimed: 0, rates: { rpd: { left: 60 } } });
  expect(await tables('boot')).not.toContain('lease');
});
