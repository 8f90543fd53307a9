/** Warnings at 50, 80 and 100 % of budgets and of limits of a day: once a period, whatever happens to the instance. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  NO_COOLDOWN,
  define,
  pool,
  request,
  resetPool,
  take,
  untilWrittenEmpty,
} from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { configure } from '../support/worker.ts';

const HOUR_MS = 3_600_000;

/** A call whose cost is guessed at `usd`. */
const estimated = (usd: number) => ({
  estimate: {
    inputTokens: 1,
    maxOutputTokens: 0,
    reserve: 'none',
    price: { input: usd, output: 0 },
  },
});

let calls = 0;

/** Lets a call run that costs that much in the end, and says so. */
async function spend(
  group: string,
  usd: number,
  guessedUsd = usd,
  version: { readonly configVersion?: number } = {},
): Promise<void> {
  const id = `spend-${(calls += 1)}`;
  const { lease } = await take(group, id, { ...estimated(guessedUsd), ...version } as never);
  const seen = { inputTokens: 1, outputTokens: 0 };
  await lease.release('success', 200, { requests: 1, ...seen, usd, seen });
}

/** Resets a pool once it has written that it is idle: else what it had set aside counts as spent for a while. */
async function restarted(group: string): Promise<void> {
  await untilWrittenEmpty(group);
  await resetPool(group);
}

async function messages(group: string): Promise<string[]> {
  return (await pool(group).warnings()).map(({ message }) => message).toReversed();
}

/** Goes to a quarter of an hour after the begin of the next day of UTC, so that no test runs into the end of an hour. */
function toNextDay(): void {
  const day = 24 * HOUR_MS;
  // The test before has taken its shift of the clock back.
  passTime(0);
  passTime(day - (Date.now() % day) + HOUR_MS / 4);
}

function minuteOf(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

beforeEach(toNextDay);
afterEach(() => vi.restoreAllMocks());

describe('a budget', () => {
  it('warns at half, at 80 % and when it is spent, each once a day, also after resets', async () => {
    await define('daily', 5, { limits: { budget_usd: { per_day: 20 } } as never });
    await spend('daily', 9.9);
    expect(await messages('daily')).toEqual([]);
    await spend('daily', 0.1);
    const until = minuteOf(Math.ceil(Date.now() / (24 * HOUR_MS)) * 24 * HOUR_MS);
    const half = `50 % of the budget for this day is spent ($10 of $20). It resets at ${until}.`;
    expect(await messages('daily')).toEqual([half]);
    await spend('daily', 1);
    await restarted('daily');
    await spend('daily', 1);
    expect(await messages('daily')).toEqual([half]);
    await spend('daily', 4.5);
    await restarted('daily');
    await spend('daily', 1);
    // What was set aside ahead of its use is lost with an instance.
    const most = expect.stringMatching(/^80 % of the budget for this day is spent \(\$16\.\d\d of/);
    expect(await messages('daily')).toEqual([half, most]);
    await spend('daily', 3.5, 1);
    const all = expect.stringMatching(
      /^All of the budget for this day is spent \(\$2\d(?:\.\d\d)? of \$20\)\. Calls are rejected until /,
    );
    expect(await messages('daily')).toEqual([half, most, all]);
    // Refusals are what was announced.
    const refused = await pool('daily').acquire(request('daily', 'more', estimated(1) as never));
    expect(refused).toMatchObject({ kind: 'rejected' });
    await restarted('daily');
    expect(await messages('daily')).toEqual([half, most, all]);
    const [latest] = await pool('daily').warnings();
    expect(latest).toMatchObject({
      kind: 'budget_spent',
      figures: { percent: 100, budget_usd: 20 },
    });
    toNextDay();
    await spend('daily', 12);
    expect((await pool('daily').warnings())[0]).toMatchObject({
      kind: 'budget_near',
      figures: { percent: 50, spent_usd: 12 },
    });
  });

  it('skips what one call leaps over, and tells hour, day and month apart', async () => {
    const budget_usd = { per_hour: 4, per_day: 10, per_month: 1_000_000 };
    await define('leap', 5, { limits: { budget_usd } as never });
    await spend('leap', 3.9);
    passTime(HOUR_MS);
    await spend('leap', 3.9);
    const reported = (await pool('leap').warnings()).toReversed();
    expect(reported.map(({ kind, message }) => `${kind}: ${message.split(' (')[0]}`)).toEqual([
      'budget_near: 80 % of the budget for this hour is spent',
      'budget_near: 80 % of the budget for this hour is spent',
      'budget_near: 50 % of the budget for this day is spent',
    ]);
  });

  it('warns where a call does not fit into what is left, though less than half is spent', async () => {
    await define('tight', 5, { limits: { budget_usd: { per_day: 0.02 } } as never });
    await spend('tight', 0.009_82);
    const asked = () =>
      pool('tight').acquire(request('tight', `no-${(calls += 1)}`, estimated(0.010_3) as never));
    expect(await asked()).toMatchObject({ kind: 'rejected' });
    expect(await messages('tight')).toEqual([
      expect.stringMatching(
        /^A call did not fit into the budget for this day and was rejected: \$0\.00982 of \$0\.02 is spent\. Similar calls are rejected until \d{4}-\d\d-\d\d 00:00 UTC\.$/,
      ),
    ]);
    await restarted('tight');
    expect(await asked()).toMatchObject({ kind: 'rejected' });
    expect(await messages('tight')).toHaveLength(1);
    toNextDay();
    await spend('tight', 0.009_82);
    expect(await asked()).toMatchObject({ kind: 'rejected' });
    expect(await messages('tight')).toHaveLength(2);
  });

  it('that is raised warns anew, by its new amount', async () => {
    await define('raised', 5, { limits: { budget_usd: { per_day: 10 } } as never });
    await spend('raised', 9);
    await define('raised', 5, { limits: { budget_usd: { per_day: 15 } } as never }, 2);
    await spend('raised', 0, 0, { configVersion: 2 });
    expect((await pool('raised').warnings()).map(({ figures }) => figures)).toEqual([
      expect.objectContaining({ percent: 50, budget_usd: 15 }),
      expect.objectContaining({ percent: 80, budget_usd: 10 }),
    ]);
  });

  it('of a member names the member', async () => {
    const limits = { max_concurrency: 5, budget_usd: { per_day: 2 } };
    await define('members', 5, {
      members: [{ name: 'a', upstream: 'openai', limits }] as never,
    });
    await spend('members', 1);
    expect(await pool('members').warnings()).toMatchObject([
      {
        kind: 'budget_near',
        member: 'a',
        message: expect.stringContaining('the budget for this day of member `a` is spent'),
      },
    ]);
  });
});

describe('a limit of a day', () => {
  it('warns of requests, says when the first count no longer, and is silent for a day', async () => {
    await define('rpd', 5, { limits: { rpd: 10 } });
    const began = Date.now();
    for (let call = 0; call < 4; call += 1) await spend('rpd', 0);
    expect(await messages('rpd')).toEqual([]);
    for (let call = 0; call < 3; call += 1) await spend('rpd', 0);
    const [half] = await pool('rpd').warnings();
    expect(half).toMatchObject({
      kind: 'day_limit_near',
      figures: { percent: 50, used: 5, limit: 10 },
      message: expect.stringContaining('50 % of the 24-hour limit of requests is used (5 of 10).'),
    });
    const { until_ms: leavesAt = 0 } = half?.figures ?? {};
    expect(leavesAt).toBeGreaterThan(began + 24 * HOUR_MS);
    expect(leavesAt).toBeLessThan(began + 25 * HOUR_MS);
    await restarted('rpd');
    await spend('rpd', 0);
    await restarted('rpd');
    const reported = async () =>
      (await pool('rpd').warnings()).map(({ kind, figures }) => [kind, figures['percent']]);
    for (let call = 0; call < 10; call += 1) {
      const asked = await pool('rpd').acquire(request('rpd', `rest-${call}`, { wait: false }));
      if (asked.kind === 'granted') await asked.lease.release('success', 200);
    }
    const all = [
      ['day_limit_spent', 100],
      ['day_limit_near', 80],
      ['day_limit_near', 50],
    ];
    expect(await reported()).toEqual(all);
    // All have left, and as many come again.
    passTime(26 * HOUR_MS);
    for (let call = 0; call < 5; call += 1) await spend('rpd', 0);
    expect(await reported()).toEqual([['day_limit_near', 50], ...all]);
  });

  it('of tokens is used up where the next call does not fit', async () => {
    await define('tpd', 5, {
      limits: { tpd: 100 },
      queue: { timeout_ms: 3_600_000 } as never,
    });
    const estimate = { inputTokens: 30, maxOutputTokens: 0, reserve: 'none', price: null };
    for (const ticket of ['a', 'b', 'c']) {
      const { lease } = await take('tpd', ticket, { estimate } as never);
      const seen = { inputTokens: 30, outputTokens: 0 };
      await lease.release('success', 200, { requests: 1, ...seen, usd: 0, seen });
    }
    expect((await pool('tpd').warnings())[0]).toMatchObject({
      kind: 'day_limit_near',
      message: expect.stringContaining('80 % of the 24-hour limit of tokens is used (90 of 100).'),
    });
    const waits = pool('tpd').acquire(
      request('tpd', 'd', { estimate, sliceMs: 3_600_000 } as never),
    );
    await expect.poll(async () => (await pool('tpd').status()).queued).toBe(1);
    expect((await pool('tpd').warnings())[0]).toMatchObject({
      kind: 'day_limit_spent',
      figures: { percent: 100, used: 90, limit: 100 },
    });
    await pool('tpd').cancel('d');
    await waits;
  });
});

it('says nothing in a group without such limits', async () => {
  await define('free', 5, { holds: NO_COOLDOWN, limits: { rpm: 10 } });
  for (let call = 0; call < 9; call += 1) {
    await spend('free', 100);
    // So that none has to wait for the next request of the minute.
    passTime(6_000);
  }
  expect(await messages('free')).toEqual([]);
});

it('a budget of a key, or of a team of keys, warns as that of a group', async () => {
  const limits = { max_concurrency: 5, budget_usd: { per_day: 2 } };
  await configure({
    teams: [{ id: 'research', limits }],
    keys: [{ id: 'team-a', hash: `sha256:${'a'.repeat(64)}`, team: 'research', limits }],
  } as never);
  for (const group of ['key:team-a', 'team:research']) {
    await spend(group, 1);
    expect(await pool(group).warnings()).toMatchObject([
      { kind: 'budget_near', group, figures: { percent: 50 } },
    ]);
  }
});
