// Leases require a gateway key that allows them, unless the configuration opens them to every caller. A key that lost the right
// may still release its leases.
import { afterAll, expect, it, vi } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { gatewayKeyHash } from '../../../src/runtime/secrets.ts';
import { nothingLeaks, pool } from '../support/pool.ts';
import { admin, call, configure, until } from '../support/worker.ts';
import { del, group, leased, limitTo, patch, post, put, queued } from './scene.ts';

afterAll(nothingLeaks);

const ANN = { 'headgate-key': 'hg_ann-key-0000000000000000000000' };
const BOB = { 'headgate-key': 'hg_bob-key-0000000000000000000000' };

type RightsKeyInput = NonNullable<ConfigInput['keys']>[number];

async function key(
  id: string,
  { 'headgate-key': secret }: typeof ANN,
  more: Partial<RightsKeyInput> = {},
): Promise<RightsKeyInput> {
  return { id, hash: await gatewayKeyHash(secret), ...more };
}

async function byKeys(...keys: RightsKeyInput[]): Promise<void> {
  await limitTo([group('g', 2), group('other', 1)], { leases: 'keys', keys });
}

it('without a gateway key a lease is refused, and the error says how to allow it', async () => {
  await configure({ groups: [group('g', 2)] });
  for (const headers of [{}, { authorization: 'Bearer sk-made-up' }, { 'x-api-key': 'sk-ant-x' }]) {
    for (const body of [{ group: 'g' }, { upstream: 'openai', model: 'gpt-4o' }]) {
      const refused = await post(body, headers);
      expect(refused).toMatchObject({ status: 403, reason: 'key_forbidden' });
      expect(refused.body.detail).toMatch(/allow: \[lease\].*leases: open/);
    }
  }
  expect(await pool('g').status()).toMatchObject({ in_use: 0, granted_total: 0 });
});

it.each([
  ['nothing', []],
  ['other operations', ['files', 'batches']],
  ['the usage of leases alone', ['lease_usage']],
])('a key that allows %s takes no lease', async (_name, allow) => {
  await byKeys(await key('ann', ANN, { allow }));
  for (const body of [{ group: 'g' }, { upstream: 'up' }]) {
    const refused = await post(body, ANN);
    expect(refused).toMatchObject({ status: 403, reason: 'key_forbidden' });
    expect(refused.body.detail).toMatch(/key `ann` .*allow: \[lease\]/);
  }
  expect(await pool('g').status()).toMatchObject({ granted_total: 0 });
});

it.each([['lease'], ['*'], ['lease*']])('a key with allow: [%s] takes leases', async (pattern) => {
  await byKeys(await key('ann', ANN, { allow: [pattern] }));
  const { lease } = await leased({ group: 'g' }, ANN);
  expect(await del(lease, undefined, ANN)).toMatchObject({ status: 204 });
});

it('a key that lost its right cannot renew or report, but can release its leases', async () => {
  await byKeys(await key('ann', ANN, { allow: ['lease'] }));
  const one = await leased({ group: 'g' }, ANN);
  const two = await leased({ group: 'g' }, ANN);
  const { ticket } = await queued({ group: 'g' }, ANN);
  await byKeys(await key('ann', ANN));
  const forbidden = { status: 403, reason: 'key_forbidden' };
  expect(await put(one.lease, ANN)).toMatchObject(forbidden);
  expect(await patch(one.lease, { status: 429 }, ANN)).toMatchObject(forbidden);
  expect(await post({ group: 'g', ticket }, ANN)).toMatchObject(forbidden);
  expect((await pool('g').status()).paused_until).toBe(null);
  // The lease holds no slot of the other group.
  await byKeys(await key('ann', ANN, { allow: ['lease'], groups: ['other'] }));
  expect(await put(two.lease, ANN)).toMatchObject(forbidden);
  for (const { lease } of [one, two]) {
    expect(await del(lease, undefined, ANN)).toMatchObject({ status: 204 });
  }
  expect(await call(`/tickets/${ticket}`, { method: 'DELETE', headers: ANN })).toMatchObject({
    status: 204,
  });
  expect(await pool('g').status()).toMatchObject({ in_use: 0, queued: 0 });
});

it.each<[string, (kept: RightsKeyInput) => ConfigInput['keys'], string]>([
  ['loses its right', (kept) => [{ ...kept, allow: [] }], 'key_forbidden'],
  ['loses the group', (kept) => [{ ...kept, groups: ['other'] }], 'key_forbidden'],
  [
    'expires',
    (kept) => [{ ...kept, expires_at: new Date(Date.now() - 1).toISOString() }],
    'key_invalid',
  ],
])('a lease is not granted to a key that %s while it waits', async (_name, changed, reason) => {
  const bob = await key('bob', BOB, { allow: ['lease'] });
  const ann = await key('ann', ANN, { allow: ['lease'] });
  const ours = [group('g', 2), group('other', 1)];
  await byKeys(ann, bob);
  const held = [await leased({ group: 'g' }, BOB), await leased({ group: 'g' }, BOB)];
  const waiting = post({ group: 'g' }, ANN);
  await until(async () =>
    expect((await pool('g').status()).oldest_wait_ms).toBeGreaterThanOrEqual(1_000),
  );
  await limitTo(ours, { leases: 'keys', keys: [...(changed(ann) ?? []), bob] });
  await del(held[0]?.lease ?? '', undefined, BOB);
  expect(await waiting).toMatchObject({ reason });
  // What was granted meanwhile is free for others at once.
  await until(async () => expect(await pool('g').status()).toMatchObject({ in_use: 1, queued: 0 }));
  await del(held[1]?.lease ?? '', undefined, BOB);
});

it('a lease is granted to a key that waits and keeps its right', async () => {
  const bob = await key('bob', BOB, { allow: ['lease'] });
  const ann = await key('ann', ANN, { allow: ['lease'] });
  await byKeys(ann, bob);
  const held = [await leased({ group: 'g' }, BOB), await leased({ group: 'g' }, BOB)];
  const waiting = leased({ group: 'g' }, ANN);
  await until(async () =>
    expect((await pool('g').status()).oldest_wait_ms).toBeGreaterThanOrEqual(1_000),
  );
  await byKeys(bob, { ...ann, allow: ['lease', 'files'] });
  for (const { lease } of held) await del(lease, undefined, BOB);
  await del((await waiting).lease, undefined, ANN);
});

it('leases: open allows every caller, or every key if keys are configured', async () => {
  await limitTo([group('g', 2)]);
  await del((await leased({ group: 'g' })).lease);
  await limitTo([group('g', 2)], { keys: [await key('bob', BOB)] });
  expect(await post({ group: 'g' })).toMatchObject({ status: 401, reason: 'key_missing' });
  await del((await leased({ group: 'g' }, BOB)).lease, undefined, BOB);
});

it('leases: open warns in the answer to a change and in the log', async () => {
  const log = vi.spyOn(console, 'log');
  await configure({ groups: [group('g', 2)] });
  const opened = await admin('PUT', '/config', { leases: 'open', groups: [group('g', 2)] });
  expect(opened.json.warnings).toEqual([
    expect.stringMatching(/^`leases: open` lets every client/),
  ]);
  await until(async () => {
    await post({ group: 'none' });
    expect(log.mock.calls.flat().join()).toMatch(/"event":"leases_open","level":"warn"/);
  });
});

it('a document that closes leases implicitly gets one warning', async () => {
  const warned = async (config: ConfigInput): Promise<string[]> =>
    (await admin('PUT', '/config', config)).json.warnings as string[];
  const groups = [group('g', 2)];
  const ann = { ...(await key('ann', ANN)), lane_max: 'normal' as const };
  const able = { ...ann, allow: ['lease'] };
  const says = expect.stringMatching(/^`leases` is not set.*allow: \[lease\].*leases: open/);
  await configure({ groups, leases: 'open' });
  expect(await warned({ groups })).toEqual([says]);
  expect(await warned({ groups, keys: [ann] })).toEqual([]);
  expect(await warned({ groups, keys: [able] })).toEqual([]);
  expect(await warned({ groups, keys: [ann] })).toEqual([says]);
  await configure({ groups, keys: [able] });
  expect(await warned({ groups, keys: [ann], leases: 'keys' })).toEqual([]);
  await configure({});
  expect(await warned({ groups })).toEqual([says]);
  const named = [group('g', 2, { match: { operations: ['chat', 'lease'] } })];
  expect(await warned({ groups: named })).toEqual([
    expect.stringMatching(/^Group `g` matches leases, but no key may take any/),
  ]);
});

/** Time for a thousand requests on a busy machine. */
const MANY = { timeout: 180_000 };

it(
  'leases of provider keys without a success are bounded, and a key that holds one may take more',
  MANY,
  async () => {
    await limitTo([], { upstreams: [{ id: 'places', base_url: 'https://places.test' }] });
    const own = (index: number) => ({ authorization: `Bearer sk-made-up-${index}` });
    const ask = async (index: number) => {
      const { status, reason, body } = await post({ upstream: 'places' }, own(index));
      return { index, status, reason, lease: body.lease };
    };
    const answers = [];
    for (let at = 0; at < 520; at += 20) {
      answers.push(...(await Promise.all(Array.from({ length: 20 }, (_, more) => ask(at + more)))));
    }
    const held = answers.filter(({ status }) => status === 201);
    expect(held.length).toBeLessThanOrEqual(500);
    expect(held.length).toBeGreaterThan(400);
    const refused = answers.filter(({ status }) => status !== 201);
    expect(refused.map(({ reason }) => reason)).toEqual(refused.map(() => 'busy'));
    const second = await ask(0);
    expect(second).toMatchObject({ status: 201 });
    await Promise.all(
      [...held, second].map(({ index, lease }) => del(lease, undefined, own(index))),
    );
  },
);
