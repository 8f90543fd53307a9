// Members that are out: warned of once, cleared when they are back, and marked in the history.
import { beforeEach, describe, expect, it } from 'vitest';
import { SERVED, type RefusalKind } from '../../../src/core/words/signal.ts';
import { NO_COOLDOWN, pool, refusedThenServed, resetPool, take } from '../support/pool.ts';
import { passTime, stopTime } from '../support/time.ts';
import { admin, change, until } from '../support/worker.ts';

let groups = 0;
let name = '';

beforeEach(async () => {
  groups += 1;
  name = `warned-members-${groups}`;
  await admin('PUT', `/groups/${name}`, {
    members: [
      { name: 'a', upstream: 'openai', limits: { max_concurrency: 2 } },
      { name: 'b', upstream: 'groq', limits: { max_concurrency: 2 }, tier: 2 },
    ],
    holds: NO_COOLDOWN,
  });
});

let tickets = 0;

const NEWEST = { configVersion: 10_000 };

/** A call that is served where it is granted. */
async function served(): Promise<string | undefined> {
  tickets += 1;
  const { lease, member } = await take(name, `told-${tickets}`, NEWEST);
  await lease.report(SERVED, false);
  await lease.release('success', null);
  return member;
}

/** A call that its member refuses, and the other one serves. */
async function refused(kind: RefusalKind): Promise<string> {
  tickets += 1;
  const [member] = await refusedThenServed(name, `told-${tickets}`, kind, NEWEST);
  return member;
}

/** A call that both members refuse. */
async function refusedByAll(kind: RefusalKind): Promise<void> {
  tickets += 1;
  const excluded: string[] = [];
  for (const attempt of [1, 2]) {
    const fields = { ...NEWEST, attempt, excluded: [...excluded] };
    const { lease, member = '' } = await take(name, `told-${tickets}`, fields);
    await lease.report({ ...SERVED, kind }, false);
    await lease.release('refused', null);
    excluded.push(member);
  }
}

const warnings = async () => (await admin('GET', `/groups/${name}/warnings`)).json.warnings;

const markers = async () => (await admin('GET', `/groups/${name}/history`)).json.markers;

describe('a member that a refusal took out', () => {
  it('is warned of once, with its reason', async () => {
    expect(await refused('unauthorized')).toBe('a');
    expect(await served()).toBe('b');
    await resetPool(name);
    await pool(name).status();
    const all = await warnings();
    expect(all).toHaveLength(1);
    expect(all[0]).toMatchObject({
      kind: 'member_out',
      group: name,
      member: 'a',
      message:
        'Member `a` gets no calls, because its upstream refuses its key. Headgate probes it periodically.',
    });
    expect(all[0]).not.toHaveProperty('cleared_at');
  });

  it('is not warned of as if the whole group had no quota', async () => {
    await refused('quota');
    const all: { kind: string }[] = await warnings();
    expect(all.map(({ kind }) => kind)).toEqual(['member_out']);
    expect((await pool(name).metrics()).warnings_total).toEqual({ member_out: 1 });
  });

  it.each([
    ['quota', 'quota_exhausted'],
    ['egress', 'egress_refused'],
  ] as const)(
    'but as the group once nobody serves what the members refuse: %s',
    async (kind, warned) => {
      for (let call = 0; call < 2; call += 1) {
        expect(await warnings()).toEqual([]);
        await refusedByAll(kind);
      }
      expect(await warnings()).toMatchObject([{ kind: warned, group: name }]);
    },
  );

  it('is cleared when a probe brings it back, and both are marked', async () => {
    await refused('unauthorized');
    passTime(61_000);
    expect(await served()).toBe('a');
    expect(await warnings()).toMatchObject([
      { kind: 'member_out', member: 'a', cleared_at: expect.stringMatching(/Z$/) },
    ]);
    expect(await markers()).toMatchObject(
      [
        { kind: 'created' },
        {
          kind: 'member_out',
          member: 'a',
          label: 'a: Member ejected',
          detail: 'Member a: It gets no calls after a refusal for unauthorized',
        },
        { kind: 'member_back', member: 'a' },
      ].slice((await markers())[0]?.kind === 'created' ? 0 : 1),
    );
    const [cleared] = await warnings();
    expect(cleared).toHaveProperty('cleared_at');
    await until(async () => {
      const { json } = await admin('GET', '/warnings?limit=200');
      const reported = json.warnings.find((each: { id: string }) => each.id === cleared.id);
      expect(reported).toEqual(cleared);
    });
  });

  it('is warned of again once ten minutes are over, where it came back in between', async () => {
    await refused('unauthorized');
    passTime(61_000);
    await served();
    await refused('quota');
    expect(await warnings()).toHaveLength(1);
    passTime(600_000);
    await pool(name).status();
    expect(await warnings()).toMatchObject([
      { message: expect.stringContaining('no quota left') },
      { message: expect.stringContaining('refuses its key') },
    ]);
  });
});

it('one that an operator took out is no news, and clears what was told of it', async () => {
  await change('POST', `/groups/${name}/members/a/take-out`);
  expect(await warnings()).toEqual([]);
  await change('POST', `/groups/${name}/members/a/bring-back`);
  expect(await refused('unauthorized')).toBe('a');
  expect((await warnings())[0]).not.toHaveProperty('cleared_at');
  await change('POST', `/groups/${name}/members/a/take-out`);
  await pool(name).status();
  expect(await warnings()).toMatchObject([{ cleared_at: expect.stringMatching(/Z$/) }]);
  await change('POST', `/groups/${name}/members/a/bring-back`);
  expect(await warnings()).toMatchObject([{ cleared_at: expect.stringMatching(/Z$/) }]);
  const kinds: { kind: string }[] = await markers();
  expect(kinds.filter(({ kind }) => kind === 'member_back')).toEqual([]);
});

it('the history counts grants and refusals by member', async () => {
  await refused('unauthorized');
  const { json } = await admin('GET', `/groups/${name}/history?step=3600`);
  expect(json.points.at(-1)).toMatchObject({
    granted: 2,
    granted_by_member: { a: 1, b: 1 },
    refused_by_member: { a: 1 },
  });
});

describe('the history of slots in use by member', () => {
  const held = async (id: string) => (await take(name, id, { configVersion: 10_000 })).lease;
  const points = async (): Promise<Record<string, unknown>[]> =>
    (await admin('GET', `/groups/${name}/history?step=60`)).json.points;

  it('has the most of each at once, and what is held on', async () => {
    passTime(61_000 - (Date.now() % 60_000));
    stopTime();
    const one = await held('held-1');
    const two = await held('held-2');
    const three = await held('held-3');
    await one.release('success', null);
    await three.release('success', null);
    expect((await points()).at(-1)).toMatchObject({ in_use_max_by_member: { a: 2, b: 1 } });
    passTime(60_000);
    await pool(name).status();
    expect((await points()).at(-1)).toMatchObject({
      in_use_max: 1,
      in_use_max_by_member: { a: 1 },
      granted_by_member: {},
    });
    await two.release('success', null);
  });
});
