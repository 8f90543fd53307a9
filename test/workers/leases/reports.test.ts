// Reports of lease holders over HTTP: the key that they count for, and how long they count until another key confirms them.
import { afterAll, expect, it } from 'vitest';
import { gatewayKeyHash } from '../../../src/runtime/secrets.ts';
import { nothingLeaks, passAwake, pool } from '../support/pool.ts';
import { configure } from '../support/worker.ts';
import { del, group, leased, limitTo, patch, post } from './scene.ts';

afterAll(nothingLeaks);

const ANN = { 'headgate-key': 'hg_ann-key-0000000000000000000000' };
const BOB = { 'headgate-key': 'hg_bob-key-0000000000000000000000' };
const WEEK_S = 7 * 86_400;
const MINUTE_MS = 60_000;

const REFUSED = {
  status: 429,
  headers: { 'retry-after': String(WEEK_S), 'x-ratelimit-remaining-requests': '0' },
  error: { error: { message: 'Rate limit reached for requests', code: 'rate_limit_exceeded' } },
};

type ReportsHeadings = Record<string, string>;

async function scene(name: string, leases: 'keys' | 'open' = 'keys'): Promise<void> {
  const key = async (id: string, { 'headgate-key': secret }: typeof ANN) => {
    return { id, hash: await gatewayKeyHash(secret), allow: ['lease'] };
  };
  await limitTo([group(name, 5, { match: { upstreams: ['up'] } })], {
    leases,
    keys: leases === 'open' ? [] : [await key('ann', ANN), await key('bob', BOB)],
  });
}

async function pausedMs(name: string): Promise<number> {
  const { paused_until: until } = await pool(name).status();
  return until === null ? 0 : Date.parse(until) - Date.now();
}

/** Takes a number of leases at once. */
function some(count: number, headers: ReportsHeadings) {
  return Promise.all(Array.from({ length: count }, () => leased({ upstream: 'up' }, headers)));
}

it('one key pauses its group for at most a minute, however often it reports', async () => {
  await scene('alone');
  const [one, two] = await some(2, ANN);
  await patch(one?.lease ?? '', REFUSED, ANN);
  const firstMs = await pausedMs('alone');
  expect(firstMs).toBeGreaterThan(0);
  expect(firstMs).toBeLessThanOrEqual(MINUTE_MS);
  const { status, reason } = await post({ upstream: 'up', max_wait_ms: 0 }, BOB);
  expect([status, reason]).toEqual([429, 'upstream_limited']);
  await patch(two?.lease ?? '', REFUSED, ANN);
  expect(await pausedMs('alone')).toBeLessThanOrEqual(firstMs);
  await passAwake('alone', MINUTE_MS);
  const next = await leased({ upstream: 'up' }, BOB);
  await del(next.lease, undefined, BOB);
});

it('a second key confirms it', async () => {
  await scene('both');
  const [[one], [two]] = await Promise.all([some(1, ANN), some(1, BOB)]);
  await patch(one?.lease ?? '', REFUSED, ANN);
  await patch(two?.lease ?? '', REFUSED, BOB);
  expect(await pausedMs('both')).toBeGreaterThan(MINUTE_MS);
  await pool('both').relearn();
});

it('callers without a gateway key hold only calls with their own keys, whatever keys they invent', async () => {
  await scene('open', 'open');
  const made = ['sk-one', 'sk-two'].map((key) => ({ authorization: `Bearer ${key}` }));
  const held = await Promise.all(made.map((headers) => leased({ group: 'open' }, headers)));
  for (const [at, { lease }] of held.entries()) await patch(lease, REFUSED, made[at] ?? {});
  // The second report is no confirmation.
  const { paused_until: all, scopes = [] } = await pool('open').status();
  expect(all).toBeNull();
  expect(scopes).toHaveLength(2);
  for (const { about, paused_until: until } of scopes) {
    expect(about.credential).not.toBeNull();
    const ms = Date.parse(until ?? '') - Date.now();
    expect(ms).toBeGreaterThan(0);
    expect(ms).toBeLessThanOrEqual(MINUTE_MS);
  }
  await pool('open').relearn();
});

it('limits that a report names are not shown as seen', async () => {
  await scene('seen');
  const [one] = await some(1, ANN);
  const headers = { 'x-ratelimit-limit-requests': '7', 'x-ratelimit-remaining-requests': '6' };
  await patch(one?.lease ?? '', { status: 200, headers }, ANN);
  expect((await pool('seen').status()).limits_seen ?? []).toEqual([]);
  await del(one?.lease ?? '', undefined, ANN);
});

it.each([
  ['minimax', 'https://api.minimax.io', { base_resp: { status_code: 1002, status_msg: 'limit' } }],
  ['zai', 'https://api.z.ai', { code: 1302, msg: 'Too many requests', success: false }],
  ['openrouter', 'https://openrouter.ai/api', { error: { code: 429, message: 'Rate limit' } }],
])('a refusal that %s sends with status 200 counts as one', async (id, url, error) => {
  await configure({
    leases: 'open',
    upstreams: [{ id, base_url: url, dialect: 'openai' }],
    groups: [group(`inside-${id}`, 5, { match: { upstreams: [id] } })],
  });
  const { lease } = await leased({ upstream: id });
  const { body } = await patch(lease, { status: 200, error });
  expect(body).toMatchObject({ action: 'again' });
  const { refusals_total: refusals } = await pool(`inside-${id}`).status();
  expect(Object.values(refusals)).toEqual([1]);
});
