// Calls with a provider key of their own go by no member: each such key has the group's limits for itself. Where they spill,
// it stays behind.
import { afterAll, describe, expect, it } from 'vitest';
import { nothingLeaks, untilStatus } from '../support/pool.ts';
import { admin, change, open, until } from '../support/worker.ts';
import {
  ask,
  KEY,
  keysAt,
  newScene,
  SECRETS,
  servedAt,
  type MemberHere,
  type MembersScene,
} from './members-scene.ts';

afterAll(nothingLeaks);

const OWN_KEYS = ['sk-of-the-caller-1', 'sk-of-the-caller-2'] as const;
type Bearer = ReturnType<typeof own>;
const own = (key: string) => ({ ...KEY, authorization: `Bearer ${key}` });

const scene = (): Promise<MembersScene> =>
  newScene({
    members: [{ at: 'there', secret: 'UPSTREAM_A', models: { m: 'another' } }],
    group: { limits: { max_concurrency: 1 } },
  });

/** Names of a group's pools. */
async function partitionsOf({ group }: MembersScene): Promise<readonly (string | null)[]> {
  const { json } = await admin('GET', '/status');
  const groups = json.groups as { name: string; partitions: { partition: string | null }[] }[];
  const shown = groups.find(({ name }) => name === group);
  return shown?.partitions.map(({ partition }) => partition) ?? [];
}

it('they go as called, with the key that they brought and under the name that they gave', async () => {
  const at = await scene();
  expect(await servedAt(at, 'own', { headers: own(OWN_KEYS[0]) })).toBeNull();
  expect(await keysAt(at.there)).toEqual([]);
  expect((await at.here.stats()).arrivals).toMatchObject([{ key: OWN_KEYS[0], model: 'm' }]);
});

it('beside calls that go by members, and others with another key', async () => {
  const at = await scene();
  const silent = { 'x-strict-silent-after-chunks': '1' };
  const json = { model: 'm', stream: true, messages: [] };
  const held = OWN_KEYS.map((key) =>
    open(at.path(), key, { json, headers: { ...own(key), ...silent } }),
  );
  await until(async () => expect((await at.here.stats()).inFlight).toBe(2));
  expect(await servedAt(at, 'call')).toBe(`${at.id('there')}:a`);
  const more = { headers: { ...own(OWN_KEYS[0]), 'headgate-max-wait': '0' } };
  const { status, headers } = await ask(at, 'more', more);
  expect([status, headers.get('headgate-reason')]).toEqual([429, 'busy']);
  expect((await at.here.stats()).peak).toBe(2);
  for (const one of held) {
    one.leave();
    await one.end;
  }
});

it('tokens of one account have the limits together', async () => {
  const at = await newScene({
    members: [{ at: 'there', secret: 'UPSTREAM_A' }],
    group: { limits: { max_concurrency: 1 } },
    upstreams: { here: { account_by: 'claim:sub' } },
  });
  const tokens = ['one', 'two', 'three'].map((jti) =>
    [{ alg: 'none' }, { sub: 'team', jti }, {}]
      .map((part) =>
        new TextEncoder()
          .encode(JSON.stringify(part))
          .toBase64({ alphabet: 'base64url', omitPadding: true }),
      )
      .join('.'),
  );
  const [first, second, third] = tokens.map(own) as [Bearer, Bearer, Bearer];
  // Its upstream has taken it, so that what it claims is true.
  expect(await servedAt(at, 'first', { headers: first })).toBeNull();
  const silent = { 'x-strict-silent-after-chunks': '1' };
  const json = { model: 'm', stream: true, messages: [] };
  const held = open(at.path(), 'second', { json, headers: { ...second, ...silent } });
  await until(async () => expect((await at.here.stats()).inFlight).toBe(1));
  const more = { headers: { ...third, 'headgate-max-wait': '0' } };
  const { status, headers } = await ask(at, 'third', more);
  expect([status, headers.get('headgate-reason')]).toEqual([429, 'busy']);
  const ofAccount = expect.stringMatching(/^own-acct_[0-9a-f]{24}$/);
  await until(async () => expect(await partitionsOf(at)).toContainEqual(ofAccount));
  held.leave();
  await held.end;
});

describe('what such a key meets', () => {
  it('is about its caller, who hears it, and about no member', async () => {
    const at = await scene();
    await at.here.configure({ byKey: { [OWN_KEYS[0]]: { status: 401 } } });
    const { status, headers } = await ask(at, 'refused', { headers: own(OWN_KEYS[0]) });
    expect([status, headers.get('headgate-tries')]).toEqual([401, '1']);
    expect(await keysAt(at.there)).toEqual([]);
    expect(await servedAt(at, 'call')).toBe(`${at.id('there')}:a`);
  });

  it('is waited for in its own pool', async () => {
    const at = await scene();
    await at.here.failNext('concurrency');
    expect(await servedAt(at, 'own', { headers: own(OWN_KEYS[0]) })).toBeNull();
    expect(await keysAt(at.here)).toEqual([OWN_KEYS[0], OWN_KEYS[0]]);
    expect(await keysAt(at.there)).toEqual([]);
    await untilStatus(at.group, { refusals_total: {} });
  });
});

it('one that goes on to another upstream goes by its members: the key was for the first', async () => {
  const at = await newScene({
    members: [{ secret: 'UPSTREAM_A', limits: { max_concurrency: 1 } }],
    upstreams: { here: { auth: { secret: 'UPSTREAM_B' } } },
    beside: (id) => [
      {
        name: 'goes-on',
        match: { models: ['x'] },
        paused: true,
        on_saturated: { spill_to: [{ upstream: id('here'), model: 'm' }] },
      },
    ],
  });
  const json = { model: 'x', messages: [] };
  const init = { path: at.path('there'), headers: own(OWN_KEYS[0]), json };
  expect(await servedAt(at, 'goes on', init)).toBe(`${at.id('here')}:a`);
  expect(await keysAt(at.here)).toEqual([SECRETS.UPSTREAM_A]);
  expect(await partitionsOf(at)).toEqual([]);
});

it("where the upstream takes no key, none that is brought is anybody's own", async () => {
  const at = await newScene({
    members: [{ limits: { max_concurrency: 1 } }],
    upstreams: { here: { auth: 'none' } },
  });
  expect(await servedAt(at, 'placeholder', { headers: own('EMPTY') })).toBe(at.id('here'));
  expect(await keysAt(at.here)).toEqual([null]);
});

describe('where no gateway keys are configured, at an upstream that takes no key', () => {
  const withoutKeys = async (members: readonly MemberHere[]): Promise<MembersScene> => {
    const at = await newScene({ members, upstreams: { here: { auth: 'none' } } });
    const { json: config } = await admin('GET', '/config');
    await change('PUT', '/config', { ...config, keys: [], version: undefined });
    return at;
  };
  const nobody = { 'headgate-key': '' };

  it('calls of anybody go by members, within their limits', async () => {
    const at = await withoutKeys([{ limits: { max_concurrency: 1 } }]);
    const silent = { ...nobody, 'x-strict-silent-after-chunks': '1' };
    const json = { model: 'm', stream: true, messages: [] };
    const holder = open(at.path(), 'holds', { json, headers: silent });
    await until(async () => expect((await at.here.stats()).inFlight).toBe(1));
    for (const more of [{}, { authorization: 'Bearer EMPTY' }]) {
      const { status, headers } = await ask(at, 'more', {
        headers: { ...nobody, ...more, 'headgate-max-wait': '0' },
      });
      expect([status, headers.get('headgate-reason')]).toEqual([429, 'busy']);
    }
    expect((await partitionsOf(at)).filter((name) => name !== null)).toEqual([]);
    holder.leave();
    await holder.end;
    expect(await servedAt(at, 'next', { headers: nobody })).toBe(at.id('here'));
  });

  it("and to none that has a key of the operator's", async () => {
    const keyed = { at: 'there', secret: 'UPSTREAM_A' } as const;
    const at = await withoutKeys([keyed, { tier: 2 }]);
    expect(await servedAt(at, 'call', { headers: nobody })).toBe(at.id('here'));
    const alone = await withoutKeys([keyed]);
    const { status, headers } = await ask(alone, 'call', { headers: nobody });
    expect([status, headers.get('headgate-reason')]).toEqual([401, 'key_missing']);
    expect(await keysAt(at.there)).toEqual([]);
  });
});

it('their pools have names that tell no key', async () => {
  const at = await scene();
  await servedAt(at, 'own', { headers: own(OWN_KEYS[0]) });
  await servedAt(at, 'call');
  const names = await partitionsOf(at);
  expect(names).toContainEqual(expect.stringMatching(/^own-fp_[0-9a-f]{24}$/));
  expect(JSON.stringify(names)).not.toContain(OWN_KEYS[0]);
  expect(Object.values(SECRETS).some((secret) => JSON.stringify(names).includes(secret))).toBe(
    false,
  );
});
