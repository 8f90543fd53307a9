// Budgets: who does not fit is told so before the upstream hears of the call, and what is in flight counts.
import { afterAll, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { nothingLeaks, NO_COOLDOWN, pool, resetPool, untilStatus } from '../support/pool.ts';
import { strictScope, type Settings, type Strict } from '../support/strict.ts';
import { passTime } from '../support/time.ts';
import { configure, until } from '../support/worker.ts';
import { CHAT, chatBody, counted, post, PRICE, untilCounted } from './scene.ts';

afterAll(nothingLeaks);

type BudgetsGroup = NonNullable<ConfigInput['groups']>[number];
type MeteringBudget = NonNullable<NonNullable<BudgetsGroup['limits']>['budget_usd']>;

/** A call costs 50 tokens at 2 USD per million, 20 at 0.5 and 11 at 10. */
const USAGE: Settings = { inputTokens: 70, cachedTokens: 20, outputTokens: 11 };
const USD = 0.00022;

const PRICES = { prices: { '*': PRICE } };
const PATH = `/up${CHAT}`;

/** A call that may write so many tokens, of which `USD` knows what it uses. */
const body = (maxTokens = 11) => chatBody('a question', { max_tokens: maxTokens });

let groups = 0;

async function budgeted(
  budget: MeteringBudget,
  settings: Settings = {},
  fields: Partial<BudgetsGroup> = {},
  upstream: object = PRICES,
): Promise<{ readonly strict: Strict; readonly group: string }> {
  groups += 1;
  const group = `budget-${groups}`;
  const strict = await strictScope('budgets', { ...USAGE, ...settings });
  const { limits, ...rest } = fields;
  await configure({
    upstreams: [{ id: 'up', base_url: strict.url, ...upstream }],
    groups: [
      {
        name: group,
        match: { upstreams: ['up'] },
        limits: { ...limits, budget_usd: budget },
        holds: NO_COOLDOWN,
        ...rest,
      },
    ],
  });
  return { strict, group };
}

async function served(sent = body()): Promise<void> {
  const response = await post(PATH, sent);
  await response.text();
  expect(response.status).toBe(200);
}

/** Reads why a caller was refused, and checks that no SDK would try again. */
async function refused(response: Response): Promise<string | null> {
  expect(response.headers.get('x-should-retry')).toBe('false');
  expect(response.headers.has('retry-after')).toBe(false);
  const { error } = await response.json<{ error: { code: string; message: string } }>();
  expect(error.code).toBe(response.headers.get('headgate-reason'));
  return `${response.status} ${error.code}: ${error.message}`;
}

const EXHAUSTED = /^402 budget_exhausted: With calls .* exceed the budget of group `budget-\d+`: /;

/** More than one call is estimated to cost, and less than two. */
const ONE_CALL = 0.0003;

it('what is in flight counts with its estimate, and the rest is free again when it has ended', async () => {
  const { strict, group } = await budgeted(
    { per_day: 0.0005 },
    { chunks: 2, silentAfterChunks: 1 },
  );
  const wide = post(PATH, chatBody('a question', { max_tokens: 40, stream: true }));
  await until(async () => expect((await strict.stats()).inFlight).toBe(1));
  const { reservedUsd } = await counted(group);
  expect(reservedUsd).toBeGreaterThan(0.0004);
  expect(await refused(await post(PATH, body()))).toMatch(EXHAUSTED);
  expect((await strict.stats()).total).toBe(1);
  await strict.configure({ silentAfterChunks: null });
  await strict.resume();
  await (await wide).text();
  await untilCounted(group, { reservedUsd: 0 });
  await served();
  await untilCounted(group, { reservedUsd: 0 });
});

it('a call that waits is refused when those before it have used up the budget', async () => {
  const limits = { max_concurrency: 1 };
  const silent = { chunks: 2, silentAfterChunks: 1, outputTokens: 500 };
  const { strict, group } = await budgeted({ per_day: 0.004 }, silent, { limits });
  const first = post(
    PATH,
    chatBody('a question', {
      max_tokens: 20,
      stream: true,
      stream_options: { include_usage: true },
    }),
  );
  await until(async () => expect((await strict.stats()).inFlight).toBe(1));
  const second = post(PATH, body());
  await untilStatus(group, { queued: 1 });
  await strict.resume();
  await (await first).text();
  expect(await refused(await second)).toMatch(EXHAUSTED);
  expect((await strict.stats()).total).toBe(1);
});

it('a reset gives no new budget', async () => {
  const { group } = await budgeted({ per_month: ONE_CALL });
  await served();
  await untilCounted(group, { usd: USD });
  await resetPool(group);
  expect(await refused(await post(PATH, body()))).toMatch(EXHAUSTED);
});

describe('a model without a known price', () => {
  it('is refused where there is a budget', async () => {
    const { strict } = await budgeted({ per_day: 1_000 }, {}, {}, { prices: { other: PRICE } });
    const text = await refused(await post(PATH, body()));
    expect(text).toMatch(
      /^400 price_unknown: The price of model `m` at upstream `up` is unknown, /,
    );
    expect(text).toContain('fallback_price');
    expect((await strict.stats()).total).toBe(0);
  });

  it('counts at the price that the group gives for such', async () => {
    const budget = { per_day: ONE_CALL, fallback_price: PRICE };
    const { group } = await budgeted(
      budget,
      {},
      {},
      { prices: { other: { input: 900, output: 900 } } },
    );
    await served();
    await untilCounted(group, { usd: USD, reservedUsd: 0 });
    expect(await refused(await post(PATH, body()))).toMatch(EXHAUSTED);
  });

  it('passes where there is none, and costs nothing that is known', async () => {
    const { group } = await budgeted({}, {}, { track_usage: 'always' }, {});
    await served();
    await untilStatus(group, { in_use: 0 });
    expect(await counted(group)).toMatchObject({ usd: 0, reservedUsd: 0 });
  });
});

it('a dry run lets pass what it would refuse for its budget or its price, and counts it', async () => {
  const { group } = await budgeted({ per_day: ONE_CALL }, {}, { dry_run: true });
  await served();
  await untilCounted(group, { usd: USD });
  await served();
  await untilCounted(group, { usd: 2 * USD });
  expect(await pool(group).status()).toMatchObject({ would_wait_total: 1, rejected_total: {} });
  await budgeted({ per_day: ONE_CALL }, {}, { dry_run: true }, {});
  await served();
});

it('the status shows what was spent, and by whom', async () => {
  const { strict, group } = await budgeted({ per_hour: 1 }, { chunks: 2, silentAfterChunks: 1 });
  const sent = chatBody('a question', {
    stream: true,
    max_tokens: 11,
    stream_options: { include_usage: true },
  });
  const calls: Promise<Response>[] = [];
  const reservedUsd = (Math.ceil(sent.length / 4) * PRICE.input + 11 * PRICE.output) / 1e6;
  for (const agent of ['run-1', 'run-2', 'run-1']) {
    calls.push(post(PATH, sent, { headers: { 'headgate-agent': agent } }));
    await until(async () => expect((await strict.stats()).inFlight).toBe(calls.length));
    const { spend } = await pool(group).status();
    expect(spend).toMatchObject({ hour_usd: 0 });
    expect(spend?.reserved_usd).toBeCloseTo(calls.length * reservedUsd, 9);
  }
  await strict.configure({ silentAfterChunks: null });
  await strict.resume();
  for (const one of calls) await (await one).text();
  await untilCounted(group, { reservedUsd: 0 });
  const { spend } = await pool(group).status();
  for (const usd of [spend?.hour_usd, spend?.day_usd, spend?.month_usd]) {
    expect(usd).toBeCloseTo(3 * USD, 9);
  }
  expect(Object.values(spend?.day_usd_by_key ?? {})).toEqual([expect.closeTo(3 * USD, 9)]);
  expect(spend?.day_usd_by_agent).toEqual({
    'run-1': expect.closeTo(2 * USD, 9) as number,
    'run-2': expect.closeTo(USD, 9) as number,
  });
});

// The clock goes forward here, so these come last.
describe('a budget is refused with 402 before the call until its period is over:', () => {
  const HOUR_MS = 3_600_000;
  const nextMonth = (now: Date): number => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1);
  const untilMultiple = (ms: number) => ms - (Date.now() % ms);

  it.each<[keyof MeteringBudget, () => number]>([
    ['per_hour', () => untilMultiple(HOUR_MS)],
    ['per_day', () => untilMultiple(24 * HOUR_MS)],
    ['per_month', () => nextMonth(new Date(Date.now())) - Date.now()],
  ])('%s', async (period, leftMs) => {
    const { strict, group } = await budgeted({ [period]: ONE_CALL });
    await served();
    await untilCounted(group, { usd: USD, reservedUsd: 0 });
    const text = await refused(await post(PATH, body()));
    expect(text).toMatch(EXHAUSTED);
    expect(text).toContain(`${ONE_CALL} USD ${period.replace('_', ' ')}.`);
    expect((await strict.stats()).total).toBe(1);
    expect(await pool(group).status()).toMatchObject({ rejected_total: { budget_exhausted: 1 } });
    passTime(leftMs() - 60_000);
    expect(await refused(await post(PATH, body()))).toMatch(EXHAUSTED);
    passTime(61_000);
    await served();
    expect((await strict.stats()).total).toBe(2);
  });
});
