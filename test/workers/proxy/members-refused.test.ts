// A refusal is about the member: the call goes to another one at once, with its age, and its caller sees a refusal only where
// no member is left.
import { afterAll, describe, expect, it } from 'vitest';
import type { MemberStatus } from '../../../src/contract/status.ts';
import { nothingLeaks, untilStatus } from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { admin, open } from '../support/worker.ts';
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

const { UPSTREAM_A: A, UPSTREAM_B: B, UPSTREAM_C: C } = SECRETS;

const A_THEN_B: readonly MemberHere[] = [
  { name: 'a', secret: 'UPSTREAM_A' },
  { name: 'b', secret: 'UPSTREAM_B', tier: 2 },
];
const A_B_C: readonly MemberHere[] = [...A_THEN_B, { name: 'c', secret: 'UPSTREAM_C', tier: 3 }];

/** Answers to all calls with a key. */
const REFUSALS: readonly (readonly [string, Record<string, string | number>])[] = [
  ['concurrency', { fail: 'concurrency' }],
  ['requests', { fail: 'requests' }],
  ['tokens', { fail: 'tokens' }],
  ['ramp', { fail: 'ramp' }],
  ['overload', { fail: 'overload' }],
  ['quota', { fail: 'quota' }],
  ['long_window', { fail: 'long_window' }],
  ['never_fits', { fail: 'never_fits' }],
  ['error', { fail: 'error' }],
  ['a connection that breaks', { fail: 'reset' }],
  ['unauthorized', { status: 401 }],
];

describe('the call goes to another member', () => {
  it.each(REFUSALS)('after %s', async (_, behaviour) => {
    const at = await newScene({
      members: A_THEN_B,
      settings: { here: { byKey: { [A]: behaviour } } },
    });
    const { status, headers } = await ask(at, 'call');
    expect([status, headers.get('headgate-member')]).toEqual([200, 'b']);
    expect(await keysAt(at.here)).toEqual([A, B]);
    expect(headers.get('headgate-tries')).toBe('2');
    expect(Number(headers.get('headgate-wait-ms'))).toBeLessThan(5_000);
  });

  it('after a refusal of its address, to one that is reached another way', async () => {
    const at = await newScene({
      members: [...A_THEN_B, { name: 'c', at: 'there', secret: 'UPSTREAM_C', tier: 3 }],
      settings: { here: { egressRefused: 'address' } },
    });
    expect(await servedAt(at, 'call')).toBe('c');
    expect([await keysAt(at.here), await keysAt(at.there)]).toEqual([[A], [C]]);
  });

  it('where its model takes a longer context, and each call anew', async () => {
    const at = await newScene({
      members: [
        { name: 'short', secret: 'UPSTREAM_A', models: { m: 'm-short' } },
        { name: 'long', secret: 'UPSTREAM_B', models: { m: 'm-long' }, tier: 2 },
      ],
      // Google's words for it, with 400.
      settings: { here: { refusal: 'gemini', byKey: { [A]: { fail: 'never_fits' } } } },
    });
    for (const label of ['one', 'two']) expect(await servedAt(at, label)).toBe('long');
    expect(await keysAt(at.here)).toEqual([A, B, A, B]);
  });

  it('where nobody has given its member a key', async () => {
    const at = await newScene({
      members: [
        { name: 'bare', at: 'there' },
        { name: 'b', secret: 'UPSTREAM_B', tier: 2 },
      ],
      settings: { there: { status: 401 } },
    });
    expect(await servedAt(at, 'call')).toBe('b');
    expect(await keysAt(at.there)).toEqual([null]);
  });

  it('and on to a third', async () => {
    const at = await newScene({
      members: A_B_C,
      settings: { here: { byKey: { [A]: { status: 401 }, [B]: { fail: 'concurrency' } } } },
    });
    expect(await servedAt(at, 'call')).toBe('c');
    expect(await keysAt(at.here)).toEqual([A, B, C]);
  });

  it('though it does not want to wait', async () => {
    const at = await newScene({
      members: A_THEN_B,
      settings: { here: { byKey: { [A]: { fail: 'requests' } } } },
    });
    const headers = { ...KEY, 'headgate-max-wait': '0' };
    expect(await servedAt(at, 'call', { headers })).toBe('b');
  });

  it('once after an error, whatever is said of retries', async () => {
    const at = await newScene({
      members: A_THEN_B,
      group: { retries: { max: 0, budget: 0 } },
      settings: { here: { byKey: { [A]: { fail: 'error' } } } },
    });
    expect(await servedAt(at, 'call')).toBe('b');
  });
});

describe.each([
  ['a 5xx', 'error', 500],
  ['an overload', 'overload', 503],
] as const)('a call that has %s of all its members', (_, fail, status) => {
  const [one, two] = ['UPSTREAM_A', 'UPSTREAM_B'].map((secret) => ({ secret }));
  const FOUR: readonly MemberHere[] = [
    { name: 'a', ...one },
    { name: 'b', ...two },
    { name: 'c', at: 'there', ...one },
    { name: 'd', at: 'there', ...two },
  ];

  it.each([
    ['goes to one more of them', 0, {}, 2],
    ['goes to as many more as it may be retried', 2, {}, 3],
    ['goes to no other if its SDK sends it again', 2, { 'x-stainless-retry-count': '1' }, 1],
  ] as const)('%s', async (__, max, headers, sent) => {
    const at = await newScene({
      members: FOUR,
      group: { retries: { max } },
      settings: { here: { fail }, there: { fail } },
    });
    const answer = await ask(at, 'call', { headers: { ...KEY, ...headers } });
    expect([answer.status, answer.headers.get('headgate-reason')]).toEqual([status, null]);
    expect(answer.headers.get('headgate-tries')).toBe(`${sent}`);
    const counts = [(await at.here.stats()).total, (await at.there.stats()).total];
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(sent);
  });
});

it('a call that one member fails and another one refuses comes back to that', async () => {
  const at = await newScene({
    members: A_THEN_B,
    settings: { here: { byKey: { [B]: { fail: 'error' } } } },
  });
  await at.here.failNext('concurrency');
  expect(await servedAt(at, 'call')).toBe('a');
  expect(await keysAt(at.here)).toEqual([A, B, A]);
});

describe('where every member refuses it', () => {
  it('its caller gets the last answer', async () => {
    const at = await newScene({
      members: A_THEN_B,
      settings: { here: { byKey: { [A]: { fail: 'quota' }, [B]: { status: 401 } } } },
    });
    const { status, headers, text } = await ask(at, 'call');
    expect([status, headers.get('headgate-reason')]).toEqual([401, null]);
    expect([headers.get('headgate-member'), headers.get('x-should-retry')]).toEqual(['b', 'false']);
    expect(text).toContain('asked to answer 401');
    expect(await keysAt(at.here)).toEqual([A, B]);
  });

  it.each([
    ['never_fits', 429],
    ['error', 500],
  ])(
    'and what one says of it is not lost where the other has no room: %s',
    async (fail, status) => {
      const at = await newScene({
        members: [
          { name: 'a', secret: 'UPSTREAM_A' },
          { name: 'b', secret: 'UPSTREAM_B', tier: 2, limits: { max_concurrency: 1 } },
        ],
        settings: { here: { byKey: { [A]: { fail } } } },
      });
      const headers = { ...KEY, 'x-strict-silent-after-chunks': '1' };
      const json = { model: 'm', stream: true, messages: [{ role: 'user', content: 'held' }] };
      const held = open(at.path(), 'held', { json, headers });
      expect((await held.response).headers.get('headgate-member')).toBe('b');
      const refused = await ask(at, 'refused', { headers: { ...KEY, 'headgate-max-wait': '1' } });
      expect([refused.status, refused.headers.get('headgate-reason')]).toEqual([status, null]);
      expect(refused.headers.get('headgate-member')).toBe('a');
      expect(refused.text).toContain('error');
      await at.here.resume();
      expect(await held.end).toBe('done');
    },
  );

  it('a wait may help, after which those alone are asked again', async () => {
    const at = await newScene({
      members: A_THEN_B,
      settings: { here: { byKey: { [A]: { status: 401 } } } },
    });
    await at.here.configure({ byKey: { [A]: { status: 401 } }, fail: null });
    await at.here.failNext('concurrency');
    // The first failure is the member's that the call meets first, which never is asked again.
    expect(await servedAt(at, 'call')).toBe('b');
    expect((await keysAt(at.here)).at(-1)).toBe(B);
  });

  it('no more often than any other call', async () => {
    const at = await newScene({
      members: A_THEN_B,
      settings: { here: { fail: 'concurrency' } },
    });
    const { status, headers } = await ask(at, 'call');
    expect([status, headers.get('headgate-reason')]).toEqual([429, null]);
    const keys = await keysAt(at.here);
    expect(keys.filter((key) => key === A)).toHaveLength(keys.filter((key) => key === B).length);
    expect(keys).toHaveLength(14);
  });

  it('nor once the others have gone', async () => {
    const at = await newScene({
      members: [
        { name: 'a', secret: 'UPSTREAM_A' },
        { name: 'b', secret: 'UPSTREAM_B', tier: 2, limits: { max_concurrency: 1 } },
      ],
      settings: { here: { byKey: { [A]: { fail: 'never_fits' } } } },
    });
    const headers = { ...KEY, 'x-strict-silent-after-chunks': '1' };
    const json = { model: 'm', stream: true, messages: [{ role: 'user', content: 'held' }] };
    const held = open(at.path(), 'held', { json, headers });
    expect((await held.response).status).toBe(200);
    const refused = ask(at, 'refused');
    await untilStatus(at.group, { in_use: 1, queued: 1 });
    await at.change([{ name: 'a', secret: 'UPSTREAM_A' }]);
    const { status, headers: said } = await refused;
    expect([status, said.get('headgate-reason')]).toEqual([429, null]);
    expect([said.get('headgate-member'), said.get('headgate-tries')]).toEqual(['a', '1']);
    expect(await keysAt(at.here)).toEqual([A, B, A]);
    await at.here.resume();
    expect(await held.end).toBe('done');
  });

  it('and not at all, if it does not want to wait', async () => {
    const at = await newScene({
      members: A_THEN_B,
      settings: { here: { fail: 'concurrency' } },
    });
    const headers = { ...KEY, 'headgate-max-wait': '0' };
    expect((await ask(at, 'call', { headers })).status).toBe(429);
    expect(await keysAt(at.here)).toEqual([A, B]);
  });
});

it('a call that waits for the others goes back to a member that serves again', async () => {
  const at = await newScene({
    members: [
      { name: 'a', secret: 'UPSTREAM_A' },
      { name: 'b', secret: 'UPSTREAM_B', tier: 2, limits: { max_concurrency: 1 } },
    ],
  });
  await at.here.failNext('never_fits');
  const headers = { ...KEY, 'x-strict-silent-after-chunks': '1' };
  const json = { model: 'm', stream: true, messages: [{ role: 'user', content: 'held' }] };
  const held = open(at.path(), 'held', { json, headers });
  expect((await held.response).headers.get('headgate-member')).toBe('b');
  await at.here.failNext('concurrency');
  const refused = servedAt(at, 'refused');
  await untilStatus(at.group, { in_use: 1, queued: 1 });
  expect(await servedAt(at, 'other')).toBe('a');
  expect(await refused).toBe('a');
  await at.here.resume();
  expect(await held.end).toBe('done');
  expect(await keysAt(at.here)).toEqual([A, B, A, A, A]);
});

describe('a member is out', () => {
  const outs = async (at: MembersScene): Promise<readonly unknown[]> => {
    const { json } = await admin('GET', `/groups/${at.group}/status`);
    return json.members.map(({ out }: MemberStatus) => out?.reason ?? null);
  };

  it.each([
    ['unauthorized', { status: 401 }],
    ['quota', { fail: 'quota' }],
  ] as const)('once another has served the call that it refused: %s', async (reason, behaviour) => {
    const at = await newScene({
      members: A_THEN_B,
      settings: { here: { byKey: { [A]: behaviour } } },
    });
    expect(await servedAt(at, 'first')).toBe('b');
    await expect.poll(() => outs(at)).toEqual([reason, null]);
    expect(await servedAt(at, 'second')).toBe('b');
    expect(await keysAt(at.here)).toEqual([A, B, B]);
  });

  it.each([
    ['unauthorized', { status: 401 }, 401],
    ['quota', { fail: 'quota' }, 429],
  ] as const)('by no call that every one refuses: %s', async (_, behaviour, status) => {
    const at = await newScene({ members: A_B_C, settings: { here: behaviour } });
    expect((await ask(at, 'refused by all')).status).toBe(status);
    expect(await outs(at)).toEqual([null, null, null]);
    await at.here.configure({ status: null, fail: null });
    expect(await servedAt(at, 'good')).toBe('a');
    expect(await keysAt(at.here)).toEqual([A, B, C, A]);
  });

  it('not by a call that is wrong for the one that would serve it', async () => {
    const at = await newScene({
      members: A_THEN_B,
      settings: { here: { byKey: { [A]: { status: 401 }, [B]: { status: 422 } } } },
    });
    expect((await ask(at, 'wrong')).status).toBe(422);
    expect(await outs(at)).toEqual([null, null]);
  });

  it('until it serves a call: a mistake of the caller brings it back no sooner', async () => {
    const at = await newScene({
      members: A_THEN_B,
      settings: { here: { byKey: { [A]: { fail: 'quota' } } } },
    });
    expect(await servedAt(at, 'first')).toBe('b');
    await expect.poll(() => outs(at)).toEqual(['quota', null]);
    passTime(61_000);
    await at.here.configure({ byKey: { [A]: { status: 400 } } });
    expect((await ask(at, 'mistaken')).status).toBe(400);
    expect(await outs(at)).toEqual(['quota', null]);
    await at.here.configure({ byKey: {} });
    expect(await servedAt(at, 'probe')).toBe('a');
    await expect.poll(() => outs(at)).toEqual([null, null]);
  });
});

describe('a call that cannot be sent again', () => {
  it('has the answer of its first member', async () => {
    const at = await newScene({
      members: A_THEN_B,
      group: { retries: { max_body_bytes: 0 } },
      settings: { here: { byKey: { [A]: { fail: 'quota' } } } },
    });
    const messages = [{ role: 'user', content: 'x'.repeat(200_000) }];
    const { status, headers } = await ask(at, 'call', { json: { model: 'm', messages } });
    expect([status, headers.get('headgate-member')]).toEqual([429, 'a']);
  });
});

it('a mistake of the caller is no refusal', async () => {
  const at = await newScene({ members: A_THEN_B, settings: { here: { status: 400 } } });
  expect((await ask(at, 'call')).status).toBe(400);
  expect(await keysAt(at.here)).toEqual([A]);
});
