// Costs by key, team, model and group: each call once, in whatever groups it is; kept over resets, over the end of a month, and
// while its pool rests, which nobody wakes for it.
import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterAll, afterEach, beforeEach, expect, it, vi } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import { DirectoryObject } from '../../../src/directory/directory-object.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import {
  inside,
  nameOf,
  nothingLeaks,
  NO_COOLDOWN,
  pool,
  request,
  resetPool,
  take,
  untilWrittenEmpty,
} from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { passTime } from '../support/time.ts';
import { admin, call, change, configure, env, until, worker } from '../support/worker.ts';
import { CHAT, chatBody, post, PRICE } from './scene.ts';

afterAll(nothingLeaks);

const DAY_MS = 86_400_000;

/** A call costs 50 tokens at 2 USD per million, 20 at 0.5 and 11 at 10. */
const USD = 0.00022;
const USAGE = { inputTokens: 70, cachedTokens: 20, outputTokens: 11 };

let scenes = 0;
let strict: Strict;
/** The names of the test's own pools: objects outlive their tests, and so do their costs. */
let named: { readonly up: string; readonly wide: string; readonly free: string };

/** Goes to noon of the next day of UTC, so that no test runs into the end of a day. */
function toNoon(): void {
  passTime(DAY_MS - (Date.now() % DAY_MS) + DAY_MS / 2);
}

beforeEach(async () => {
  passTime(0);
  toNoon();
  scenes += 1;
  const [up, wide, free] = [`up${scenes}`, `wide${scenes}`, `free${scenes}`];
  named = { up, wide, free };
  strict = await strictScope('cost-table', USAGE);
  const at = { base_url: strict.url, prices: { m: PRICE, 'n*': PRICE } };
  await configure({
    upstreams: [
      { id: up, ...at },
      { id: free, ...at },
    ],
    groups: [
      { name: up, match: { upstreams: [up] }, track_usage: 'always', holds: NO_COOLDOWN },
      // It is in every call besides, and counts what it costs too.
      { name: wide, limits: { budget_usd: { per_month: 100 } }, holds: NO_COOLDOWN },
      { name: free, match: { upstreams: [free] }, holds: NO_COOLDOWN },
    ],
    keys: [{ id: 'spare', hash: `sha256:${'0'.repeat(64)}` }],
  });
});

afterEach(() => {
  vi.restoreAllMocks();
});

async function newKey(id: string, fields: object = {}): Promise<string> {
  const { json } = await change('POST', '/keys', { id, ...fields });
  return json.secret;
}

async function ask(secret: string, model = 'm', upstream = named.up): Promise<number> {
  const headers = { 'headgate-key': secret };
  const answer = await post(`/${upstream}${CHAT}`, chatBody('hello', { model }), { headers });
  await answer.text();
  return answer.status;
}

/** Counts what the directory keeps of a group's costs of this month, without asking any pool. */
async function saidOf(group: string): Promise<number> {
  const month = new Date(Date.now()).toISOString().slice(0, 7);
  const pools = await directoryOf(env).costs(month, []);
  return pools.filter((one) => one.group === group).length;
}

/** Reads costs, of this test's keys alone. */
async function costs(query: string) {
  const { status, json } = await admin('GET', `/costs?${query}`);
  expect(status).toBe(200);
  return json;
}

// oxlint-disable-next-line typescript/no-explicit-any -- rows of an answer as it is
async function rowOf(query: string, name: string): Promise<any> {
  const { rows } = await costs(query);
  return rows.find((row: { name: string | null }) => row.name === name) ?? null;
}

function untilCosts(query: string, name: string, expected: object): Promise<void> {
  return until(async () => expect(await rowOf(query, name)).toMatchObject(expected));
}

it('each call counts once, whatever groups it is in and however it is looked at', async () => {
  const id = `ci${scenes}`;
  // Its own group and its team's count the same calls.
  await change('PUT', `/teams/apps${scenes}`, { limits: { budget_usd: { per_month: 5 } } });
  const secret = await newKey(id, {
    team: `apps${scenes}`,
    limits: { budget_usd: { per_day: 2 } },
  });
  for (const model of ['m', 'm', `n${scenes}`]) expect(await ask(secret, model)).toBe(200);
  const sums = { calls: 3, input_tokens: 210, cached_tokens: 60, output_tokens: 33 };
  await untilCosts('by=key&period=day', id, sums);
  const ofKey = await rowOf('by=key&period=day', id);
  expect(ofKey.usd).toBeCloseTo(3 * USD, 9);
  expect(ofKey.budget.limit_usd).toBe(2);
  expect(ofKey.budget.left_usd).toBeCloseTo(2 - 3 * USD, 9);
  const ofTeam = await rowOf('by=team&period=month', `apps${scenes}`);
  expect(ofTeam).toMatchObject(sums);
  expect(ofTeam.budget.left_usd).toBeCloseTo(5 - 3 * USD, 9);
  expect(await rowOf('by=model', `n${scenes}`)).toMatchObject({ calls: 1 });
  expect(await rowOf('by=group', named.up)).toMatchObject(sums);
  // It comes on top of the upstream's group, and only its budget knows of the calls.
  expect(await rowOf('by=group', named.wide)).toMatchObject({
    calls: 0,
    budget: { limit_usd: 100 },
  });
  const all = await Promise.all(['key', 'team', 'model', 'group'].map((by) => costs(`by=${by}`)));
  const totals = all.map(({ total }) => total);
  for (const { calls } of totals) expect(calls).toBe(totals[0].calls);
  for (const { rows, total } of all) {
    const usd = rows.reduce((sum: number, row: { usd: number }) => sum + row.usd, 0);
    expect(usd).toBeCloseTo(total.usd, 9);
  }
  expect(all[0].days.reduce((sum: number, day: { calls: number }) => sum + day.calls, 0)).toBe(
    totals[0].calls,
  );
});

it('a call stays with the team that its key had, wherever the key is now', async () => {
  const [id, before, after] = [`moved${scenes}`, `before${scenes}`, `after${scenes}`];
  const secret = await newKey(id, { team: before });
  expect(await ask(secret)).toBe(200);
  await untilCosts('by=team', before, { calls: 1 });
  await change('PATCH', `/keys/${id}`, { team: after });
  expect(await ask(secret)).toBe(200);
  expect(await ask(secret)).toBe(200);
  await untilCosts('by=team', after, { calls: 2 });
  await change('DELETE', `/keys/${id}`);
  expect(await rowOf('by=team', before)).toMatchObject({ calls: 1 });
  expect(await rowOf('by=team', after)).toMatchObject({ calls: 2 });
  expect(await rowOf('by=key', id)).toMatchObject({ calls: 3 });
});

it('a budget that nobody has called for is whole, and wakes nobody; one that does not answer is not known', async () => {
  const limits = { budget_usd: { per_month: 3 } };
  await newKey(`idle${scenes}`, { limits });
  const asked = vi.spyOn(GroupObject.prototype, 'status');
  expect((await rowOf('by=key', `idle${scenes}`)).budget).toMatchObject({
    limit_usd: 3,
    left_usd: 3,
  });
  expect(asked.mock.contexts.map(nameOf)).not.toContain(`key:idle${scenes}`);
  const secret = await newKey(`busy${scenes}`, { limits });
  expect(await ask(secret)).toBe(200);
  await untilCosts('by=key', `busy${scenes}`, { calls: 1 });
  asked.mockRejectedValue(new Error('out of reach'));
  expect((await rowOf('by=key', `busy${scenes}`)).budget).toEqual({
    limit_usd: 3,
    spent_usd: null,
    reserved_usd: null,
    left_usd: null,
  });
});

it('a refused call is none, and one without a known price costs nothing and says so', async () => {
  const secret = await newKey(`odd${scenes}`);
  await change('PATCH', `/groups/${named.wide}`, { limits: null });
  await strict.failNext('error', 1);
  expect(await ask(secret)).toBeGreaterThan(499);
  expect(await ask(secret, 'unheard-of')).toBe(200);
  await untilCosts('by=key', `odd${scenes}`, { calls: 1, unpriced_calls: 1, usd: 0 });
});

it('a group that counts nothing is named, and its calls are known where another group counts them', async () => {
  await change('PATCH', `/groups/${named.wide}`, { limits: null, track_usage: 'off' });
  await change('PATCH', `/groups/${named.free}`, { track_usage: 'off' });
  const [free, paid] = [
    await newKey(`free${scenes}`),
    await newKey(`paid${scenes}`, { limits: { budget_usd: { per_month: 1 } } }),
  ];
  expect(await ask(free, 'm', named.free)).toBe(200);
  expect(await ask(paid, 'm', named.free)).toBe(200);
  await untilCosts('by=group', named.free, { calls: 1 });
  expect(await rowOf('by=key', `free${scenes}`)).toBeNull();
  const { not_metered: groups } = await costs('by=key');
  expect(groups).toContain(named.free);
  expect(groups).not.toContain(named.up);
});

/** Posts a call to the group that counts what answers report, and nothing else. */
async function askFree(secret: string, fields: object = {}): Promise<void> {
  const headers = { 'headgate-key': secret };
  const body = { ...JSON.parse(chatBody('hello', { model: 'm' })), ...fields };
  const answer = await post(`/${named.free}${CHAT}`, JSON.stringify(body), { headers });
  expect(answer.status).toBe(200);
  await answer.text();
}

it('calls count by default with the usage that their answers report', async () => {
  await change('DELETE', `/groups/${named.wide}`);
  await change('PUT', `/teams/apps${scenes}`, {});
  const secret = await newKey(`default${scenes}`, { team: `apps${scenes}` });
  // The first takes a lease; the others may run on slots that the isolate was lent, and ask nobody.
  for (let made = 0; made < 5; made++) await askFree(secret);
  await askFree(secret, { stream: true, stream_options: { include_usage: true } });
  const sums = { calls: 6, input_tokens: 420, cached_tokens: 120, output_tokens: 66 };
  await untilCosts('by=key', `default${scenes}`, { ...sums, unpriced_calls: 0 });
  const row = await rowOf('by=team', `apps${scenes}`);
  expect(row.usd).toBeCloseTo(6 * USD, 9);
  // No group has a rule about models, so the answers name them.
  expect(await rowOf('by=model', 'm')).toMatchObject({ unreported_calls: 0 });
});

it('a stream that reports no usage counts as such, and is not asked for any', async () => {
  await change('PATCH', `/groups/${named.wide}`, { limits: null, track_usage: 'off' });
  const secret = await newKey(`silent${scenes}`);
  await askFree(secret, { stream: true });
  const silent = { calls: 1, unreported_calls: 1, unpriced_calls: 0, usd: 0, output_tokens: 0 };
  await untilCosts('by=key', `silent${scenes}`, silent);
  expect(await rowOf('by=key&period=day', `silent${scenes}`)).toMatchObject(silent);
});

it('a group with a limit of requests alone counts what answers report', async () => {
  await change('PATCH', `/groups/${named.wide}`, { limits: null, track_usage: 'off' });
  await change('PATCH', `/groups/${named.free}`, { limits: { rpm: 1_000 } });
  const secret = await newKey(`rpm${scenes}`);
  for (let made = 0; made < 3; made++) await askFree(secret);
  await untilCosts('by=key', `rpm${scenes}`, { calls: 3, input_tokens: 210 });
  expect((await rowOf('by=group', named.free)).calls).toBe(3);
});

it('a reset loses none that was written, and the month that is over stays', async () => {
  const secret = await newKey(`kept${scenes}`);
  expect(await ask(secret)).toBe(200);
  await untilCosts('by=key&period=day', `kept${scenes}`, { calls: 1 });
  await untilWrittenEmpty(named.up);
  await resetPool(named.up);
  expect(await rowOf('by=key&period=day', `kept${scenes}`)).toMatchObject({ calls: 1 });
  // Whatever the day is, this is in the next month.
  const today = new Date(Date.now());
  const next = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 1, 1, 12);
  passTime(next - today.getTime());
  expect(await ask(secret)).toBe(200);
  await untilCosts('by=key&period=month', `kept${scenes}`, { calls: 1, budget: null });
  expect(await rowOf('by=key&period=month&which=last', `kept${scenes}`)).toMatchObject({
    calls: 1,
  });
  await untilWrittenEmpty(named.up);
  const days = await inside(named.up, (_instance, { storage }) =>
    storage.sql.exec('SELECT day FROM cost').toArray(),
  );
  expect(days).toEqual([{ day: Math.floor(today.getTime() / DAY_MS) }]);
  await resetPool(named.up);
  expect(await rowOf('by=key&period=month&which=last', `kept${scenes}`)).toMatchObject({
    calls: 1,
  });
});

it('a group that is deleted has had them all the same', async () => {
  const secret = await newKey(`gone${scenes}`);
  expect(await ask(secret)).toBe(200);
  await untilCosts('by=key', `gone${scenes}`, { calls: 1 });
  await change('DELETE', `/groups/${named.up}`);
  // It rests by then, and whoever is past the end of its window is not asked.
  await until(async () => expect(await saidOf(named.up)).toBe(1));
  passTime(DAY_MS / 24);
  expect(await rowOf('by=group', named.up)).toMatchObject({ calls: 1 });
  expect(await rowOf('by=key', `gone${scenes}`)).toMatchObject({ calls: 1 });
});

it('a deleted group keeps its costs when its pool reports after the directory dropped it', async () => {
  const secret = await newKey(`late${scenes}`);
  expect(await ask(secret)).toBe(200);
  await untilCosts('by=key', `late${scenes}`, { calls: 1 });
  // The pool's own report takes longer than the directory needs to find the pool empty.
  const dropped = Promise.withResolvers<void>();
  // oxlint-disable-next-line typescript/unbound-method -- it is called with its object below
  const { unlist } = DirectoryObject.prototype;
  vi.spyOn(DirectoryObject.prototype, 'unlist').mockImplementation(async function (
    this: DirectoryObject,
    listed,
    reported,
  ) {
    if (listed.jurisdiction === undefined) await dropped.promise;
    await unlist.call(this, listed, reported);
  });
  const asked = vi.spyOn(GroupObject.prototype, 'forget');
  await change('DELETE', `/groups/${named.up}`);
  await until(async () => {
    const listed = await directoryOf(env).pools();
    const isListed = listed.some(({ group }) => group === named.up);
    expect(isListed && !asked.mock.contexts.map(nameOf).includes(named.up)).toBe(false);
  });
  dropped.resolve();
  await until(async () => expect(await saidOf(named.up)).toBe(1));
  expect(await rowOf('by=key', `late${scenes}`)).toMatchObject({ calls: 1 });
});

it('a group that is deleted while its pool is being listed keeps its costs', async () => {
  const listing = Promise.withResolvers<void>();
  // oxlint-disable-next-line typescript/unbound-method -- it is called with its object below
  const { list } = DirectoryObject.prototype;
  vi.spyOn(DirectoryObject.prototype, 'list').mockImplementation(async function (
    this: DirectoryObject,
    listed,
  ) {
    if (listed.group === named.up) await listing.promise;
    return list.call(this, listed);
  });
  const secret = await newKey(`soon${scenes}`);
  expect(await ask(secret)).toBe(200);
  await change('DELETE', `/groups/${named.up}`);
  listing.resolve();
  await until(async () => expect(await saidOf(named.up)).toBe(1));
  await until(async () => {
    const listed = await directoryOf(env).pools();
    expect(listed.map(({ group }) => group)).not.toContain(named.up);
  });
});

it('a group that is deleted while a call runs keeps its costs, though the last report of its pool is lost', async () => {
  const secret = await newKey(`lost${scenes}`);
  expect(await ask(secret)).toBe(200);
  await untilCosts('by=key', `lost${scenes}`, { calls: 1 });
  const { lease } = await take(named.up, `runs${scenes}`);
  // oxlint-disable-next-line typescript/unbound-method -- it is called with its object below
  const { unlist } = DirectoryObject.prototype;
  let reports = 0;
  vi.spyOn(DirectoryObject.prototype, 'unlist').mockImplementation(async function (
    this: DirectoryObject,
    listed,
    reported,
  ) {
    if (listed.group === named.up && reports++ === 0) throw new Error('lost');
    await unlist.call(this, listed, reported);
  });
  await change('DELETE', `/groups/${named.up}`);
  await until(async () => {
    const late = await pool(named.up).acquire(request(named.up, `late${scenes}`));
    expect(late.kind).toBe('moved');
  });
  await lease.release('success', 200);
  lease[Symbol.dispose]();
  await until(() => expect(reports).toBeGreaterThan(0));
  passTime(30_000);
  await until(async () => {
    await runDurableObjectAlarm(directoryOf(env) as never);
    const listed = await directoryOf(env).pools();
    expect(listed.map(({ group }) => group)).not.toContain(named.up);
  });
  expect(await saidOf(named.up)).toBe(1);
});

it('a pool that rests is not woken for them', async () => {
  const secret = await newKey(`calm${scenes}`);
  expect(await ask(secret)).toBe(200);
  await untilCosts('by=key', `calm${scenes}`, { calls: 1 });
  await until(async () => {
    const { json } = await admin('GET', `/groups/${named.up}/status`);
    expect(json.in_use).toBe(0);
  });
  passTime(400_000);
  await until(async () => {
    await runDurableObjectAlarm(pool(named.up) as never);
    const { json } = await admin('GET', `/groups/${named.up}/status`);
    expect(json.as_of).toBeDefined();
  });
  const asked = vi.spyOn(GroupObject.prototype, 'costs');
  expect(await rowOf('by=key', `calm${scenes}`)).toMatchObject({ calls: 1 });
  expect(asked.mock.contexts.map(nameOf)).not.toContain(named.up);
});

it('of thousands of pools add up, each with keys of its own', async () => {
  const [month, group, pools] = [
    new Date(Date.now()).toISOString().slice(0, 7),
    `many${scenes}`,
    2_500,
  ];
  const one = {
    usd: 1,
    inputTokens: 10,
    cachedTokens: 0,
    outputTokens: 1,
    calls: 1,
    unpriced: 0,
    waited: 0,
  };
  await runInDurableObject(directoryOf(env) as never, (_instance, { storage }) => {
    for (let number = 0; number < pools; number += 1) {
      const lines = Array.from({ length: 10 }, (_, at) => ({
        ...one,
        key: `${number}-${at}`,
        team: null,
        model: 'm',
      }));
      const reported = {
        lines,
        rest: null,
        days: [{ ...one, date: `${month}-01`, calls: 10, usd: 10 }],
      };
      storage.sql.exec(
        `INSERT INTO costs (group_name, object_name, jurisdiction, partition_key, said_at, said)
         VALUES (?, ?, '', ?, ?, ?)`,
        group,
        `${group}#${number}`,
        String(number),
        Date.now(),
        JSON.stringify({ [month]: reported }),
      );
    }
  });
  expect(await rowOf('by=group', group)).toMatchObject({ calls: 10 * pools, usd: 10 * pools });
  const { rows, total, days } = await costs('by=key');
  const sum = (of: readonly { calls: number }[]) => of.reduce((all, { calls }) => all + calls, 0);
  expect(sum(rows)).toBe(total.calls);
  expect(sum(days)).toBe(total.calls);
  expect(total.calls).toBeGreaterThanOrEqual(10 * pools);
  // So many lines are told of, and what comes then is one.
  expect(rows.length).toBeLessThan(20_100);
  expect(rows.find(({ is_rest: isRest }: { is_rest: boolean }) => isRest)?.calls).toBeGreaterThan(
    0,
  );
});

it('come as CSV, by the query or the Accept header', async () => {
  await change('PATCH', `/groups/${named.wide}`, { limits: null });
  const secret = await newKey(`table${scenes}`);
  expect(await ask(secret, '=HYPERLINK("http://x")')).toBe(200);
  await untilCosts('by=model', '=HYPERLINK("http://x")', { calls: 1 });
  const headers = { authorization: 'Bearer test-admin-token', accept: 'text/csv' };
  const answer = await worker.fetch('https://headgate.test/admin/api/costs?by=model', { headers });
  expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8');
  expect(answer.headers.get('content-disposition')).toMatch(
    /^attachment; filename="costs-[\d-]+-by-model\.csv"$/,
  );
  expect(answer.headers.get('cache-control')).toBe('no-store');
  const text = await answer.text();
  // Its price is not known, which is not 0.
  expect(text).toContain(`"'=HYPERLINK(""http://x"")",,70,20,11,1,1,0,0,,`);
  expect(text.split('\r\n')[0]).toBe(
    'from,to,model,usd,input_tokens,cached_tokens,output_tokens,calls,unpriced_calls,unreported_calls,waited_calls,budget_usd,budget_left_usd',
  );
  const month = new Date(Date.now()).toISOString().slice(0, 7);
  const lines = text.trimEnd().split('\r\n').slice(1);
  for (const line of lines) expect(line).toMatch(new RegExp(`^${month}-01,${month}-\\d\\d,`));
  // A row for the total would double the sums of a spreadsheet.
  expect(text).not.toContain('total');
  const byQuery = await call('/admin/api/costs?format=csv&by=key', { headers });
  expect(await byQuery.text()).toContain(`table${scenes},`);
});

it('tell who waited', async () => {
  // In several groups a call may be granted by the second one that it asks, at once.
  await change('DELETE', `/groups/${named.wide}`);
  await change('PATCH', `/groups/${named.up}`, { limits: { max_concurrency: 1 } });
  const secret = await newKey(`slow${scenes}`);
  // Long enough that all of them have arrived before the first one ends.
  await strict.configure({ firstByteDelayMs: 500 });
  const calls = [ask(secret), ask(secret), ask(secret)];
  expect(await Promise.all(calls)).toEqual([200, 200, 200]);
  await untilCosts('by=key', `slow${scenes}`, { calls: 3, waited_calls: 2 });
  expect(await ask(secret, 'unheard-of')).toBe(200);
  await untilCosts('by=key', `slow${scenes}`, { calls: 4, unpriced_calls: 1 });
  const { without_queue: estimate, total } = await costs('by=key');
  // One whose price nobody knows is taken for free.
  const meanUsd = total.usd / total.calls;
  expect(estimate.usd_one_step.to).toBeCloseTo(total.waited_calls * 0.75 * meanUsd, 9);
  expect(estimate.tries_more.to).toBeGreaterThanOrEqual(2);
  expect(estimate.usd_whole_run.to).toBeGreaterThan(estimate.usd_one_step.to);
});
