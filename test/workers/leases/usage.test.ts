// The charge of a lease: the reported usage if its key has the right to report it, and otherwise the reservation.
import { afterAll, expect, it } from 'vitest';
import { gatewayKeyHash } from '../../../src/runtime/secrets.ts';
import { nothingLeaks, pool } from '../support/pool.ts';
import { call } from '../support/worker.ts';
import { del, group, leased, limitTo, patch, post } from './scene.ts';

afterAll(nothingLeaks);

const TRUSTED = { 'headgate-key': 'hg_trusted-0000000000000000000000' };
const OTHER = { 'headgate-key': 'hg_other-000000000000000000000000' };
const BUDGET = 1_000;

/** Price in USD of the estimate below. */
const RESERVED = 0.011;
const WANTED = {
  upstream: 'up',
  model: 'm-1',
  estimate: { input_tokens: 1_000, output_tokens: 5_000 },
};

/** A group with a budget, at a dollar for a million tokens of input and ten for output. */
async function counted(name: string): Promise<void> {
  const key = async (id: string, { 'headgate-key': secret }: typeof OTHER, allow: string[]) => {
    return { id, hash: await gatewayKeyHash(secret), allow };
  };
  const limits = { max_concurrency: 5, budget_usd: { per_month: BUDGET } };
  await limitTo([group(name, 5, { match: { upstreams: ['up'] }, limits })], {
    leases: 'keys',
    upstreams: [
      { id: 'up', base_url: 'https://up.test', prices: { 'm-*': { input: 1, output: 10 } } },
    ],
    keys: [
      await key('trusted', TRUSTED, ['lease', 'lease_usage']),
      await key('other', OTHER, ['lease']),
    ],
  });
}

async function spentOf(name: string): Promise<number> {
  return (await pool(name).status()).spend?.month_usd ?? 0;
}

it('a key with allow: [lease_usage] is charged the usage that it reports, even less or 0', async () => {
  await counted('trusted');
  const lease = await leased(WANTED, TRUSTED);
  expect((await pool('trusted').status()).spend?.reserved_usd).toBeCloseTo(RESERVED, 6);
  const usage = { input_tokens: 1_000, output_tokens: 100, cached_tokens: 0 };
  const released = await del(lease.lease, { usage }, TRUSTED);
  expect(released.headers.get('headgate-usage')).toBe('reported');
  expect(await spentOf('trusted')).toBeCloseTo(0.002, 6);
  const more = await leased(WANTED, TRUSTED);
  await del(more.lease, { usage: { input_tokens: 1_000_000, output_tokens: 0 } }, TRUSTED);
  expect(await spentOf('trusted')).toBeCloseTo(1.002, 6);
  const none = await leased(WANTED, TRUSTED);
  await del(none.lease, { usage: { input_tokens: 0, output_tokens: 0 } }, TRUSTED);
  expect(await spentOf('trusted')).toBeCloseTo(1.002, 6);
  expect((await pool('trusted').status()).spend?.reserved_usd).toBe(0);
});

it.each([
  ['more', { input_tokens: 10_000_000, output_tokens: 10_000_000 }],
  ['less', { input_tokens: 1, output_tokens: 1 }],
  ['nothing', { input_tokens: 0, output_tokens: 0 }],
  ['only cached tokens', { cached_tokens: 10_000_000 }],
])(
  'a key without it is charged the reservation when it reports %s, and the answer says so',
  async (name, usage) => {
    const its = `other-${name.replaceAll(' ', '-')}`;
    await counted(its);
    const lease = await leased(WANTED, OTHER);
    const released = await del(lease.lease, { usage }, OTHER);
    expect(released).toMatchObject({ status: 204 });
    expect(released.headers.get('headgate-usage')).toBe('reserved');
    expect(await spentOf(its)).toBeCloseTo(RESERVED, 6);
    expect((await pool(its).status()).spend?.reserved_usd).toBe(0);
    // It does not affect estimates for the model either.
    const next = await leased(WANTED, OTHER);
    expect((await pool(its).status()).spend?.reserved_usd).toBeCloseTo(RESERVED, 6);
    await del(next.lease, undefined, OTHER);
  },
);

it('a key without it cannot make its lease free by reporting a refusal', async () => {
  await counted('refused');
  const lease = await leased(WANTED, OTHER);
  await patch(lease.lease, { status: 500, error: 'it broke' }, OTHER);
  expect(await spentOf('refused')).toBeCloseTo(RESERVED, 6);
  const trusted = await leased(WANTED, TRUSTED);
  await patch(trusted.lease, { status: 500, error: 'it broke' }, TRUSTED);
  expect(await spentOf('refused')).toBeCloseTo(RESERVED, 6);
});

it('an estimate of no input reserves as much as a call of unknown length', async () => {
  await counted('unsaid');
  const estimate = { input_tokens: 0, output_tokens: 0 };
  const lease = await leased({ ...WANTED, estimate }, OTHER);
  await del(lease.lease, undefined, OTHER);
  expect(await spentOf('unsaid')).toBeCloseTo(0.016384, 6);
});

it('a model without a price is refused in a group with a budget', async () => {
  await counted('unpriced');
  const refused = await post({ ...WANTED, model: 'other' }, TRUSTED);
  expect(refused).toMatchObject({ status: 400, reason: 'price_unknown' });
});

it.each([
  ['usage', 'input_tokens'],
  ['usage', 'output_tokens'],
  ['usage', 'cached_tokens'],
  ['estimate', 'input_tokens'],
  ['estimate', 'output_tokens'],
])('%s.%s has at most ten million tokens', async (part, field) => {
  await counted('bounded');
  const lease = await leased(WANTED, TRUSTED);
  for (const tokens of [10_000_001, Number.MAX_SAFE_INTEGER, 1e300, -1]) {
    const body = { ...(part === 'estimate' && WANTED), [part]: { [field]: tokens } };
    const [method, path] =
      part === 'usage' ? ['DELETE', `/leases/${lease.lease}`] : ['POST', '/leases'];
    const answer = await call(path ?? '', {
      method: method ?? '',
      headers: { ...TRUSTED, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    expect(answer.status).toBe(400);
    expect(text).toContain(`${part}.${field}: expected `);
  }
  expect(
    await del(lease.lease, { usage: { input_tokens: 0, output_tokens: 0 } }, TRUSTED),
  ).toMatchObject({
    status: 204,
  });
});
