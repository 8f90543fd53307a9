// The members of a group that is split into several pools: what is told of each in all of them.
import { expect, it } from 'vitest';
import { emptyRates } from '../../../src/core/parts/rates.ts';
import { instant } from '../../../src/core/words/ids.ts';
import { joinMembers } from '../../../src/overview/group-status.ts';
import { withMembers } from '../../../src/overview/unused-group.ts';
import { resting, untouched } from '../../../src/overview/unused-group.ts';
import type { MemberStatus, PoolStatus } from '../../../src/contract/status.ts';
import { aConfig } from '../routing/fixtures.ts';

const NOW = instant(Date.parse('2026-03-14T12:30:00Z'));

const CONFIG = aConfig({
  groups: [
    {
      name: 'g',
      members: [
        {
          name: 'a',
          upstream: 'openai',
          limits: { max_concurrency: 4, budget_usd: { per_day: 9 } },
        },
        { name: 'b', upstream: 'groq', limits: { max_concurrency: 2 } },
      ],
    },
  ],
});

function pool(a: Partial<MemberStatus>, fields: Partial<PoolStatus> = {}): PoolStatus {
  const [group] = CONFIG.groups;
  if (group === undefined) throw new Error('no group');
  const { status } = untouched(group, NOW);
  const [first, ...rest] = status.members ?? [];
  if (first === undefined) throw new Error('no member');
  return { ...status, ...fields, members: [{ ...first, ...a }, ...rest] };
}

const of = (said: PoolStatus, afterMs = 0): PoolStatus => {
  const [group] = CONFIG.groups;
  if (group === undefined) throw new Error('no group');
  const metrics = { ...untouched(group, NOW), status: said };
  const reported = { at: NOW, metrics, rates: emptyRates() };
  return resting({ group: 'g', partition: null }, reported, CONFIG, instant(NOW + afterMs)).status;
};

it('are added up by their ids, with the worst of what stops them', () => {
  const affinity = { kept_total: 1, left_total: 2, waited_total: 3 };
  const out = {
    reason: 'quota',
    since: '2026-03-14T12:00:00.000Z',
    probe_at: '2026-03-14T12:01:00.000Z',
  } as const;
  const limit = { configured: 4, effective: 3, source: 'learned' } as const;
  const { members = [], affinity: together } = joinMembers([
    pool({ in_use: 1, granted_total: 5, cost_usd_total: 0.5 }, { affinity }),
    pool({ in_use: 2, granted_total: 6, breaker: 'open', out, limit }, { affinity }),
  ]);
  expect(members.map(({ id }) => id)).toEqual(['a', 'b']);
  expect(members[0]).toMatchObject({
    in_use: 3,
    granted_total: 11,
    cost_usd_total: 0.5,
    breaker: 'open',
    out,
    rates: null,
    limit: { configured: 4, effective: 3 },
    spend: { day_usd: 0 },
  });
  expect(together).toEqual({ kept_total: 2, left_total: 4, waited_total: 6 });
});

it('are none where no pool tells of any', () => {
  const { members: _members, affinity: _affinity, ...whole } = pool({});
  expect(joinMembers([whole])).toEqual({});
});

it('of a pool that rests are those of the configuration, with what it said of them', () => {
  const out = {
    reason: 'quota',
    since: '2026-03-14T12:00:00.000Z',
    probe_at: '2026-03-14T12:01:00.000Z',
  } as const;
  const gone = { ...pool({}).members?.[0], id: 'gone' } as MemberStatus;
  const said = pool({ in_use: 3, granted_total: 7, out });
  const { members, limit } = of({ ...said, members: [...(said.members ?? []), gone] }, 60_000);
  expect(members?.map(({ id }) => id)).toEqual(['a', 'b']);
  expect(members?.[0]).toMatchObject({ in_use: 0, granted_total: 7, out });
  // One that is out gives no slots.
  expect(limit).toEqual({ configured: 6, effective: 2, source: 'configured' });
});

it('are those of the configuration where a pool was never called, and knows of none', () => {
  const { members: _members, affinity: _affinity, ...status } = pool({});
  const seen = (partition: string | null, reported: PoolStatus) =>
    withMembers(reported, { group: 'g', partition }, CONFIG, NOW).members?.map(
      (each) => each.in_use,
    );
  expect(seen(null, status)).toEqual([0, 0]);
  expect(seen('acme', status)).toEqual([0, 0]);
  expect(seen(null, pool({ in_use: 3 }))).toEqual([3, 0]);
  // Calls with a key of their own go by no member.
  expect(seen('own-none', status)).toBeUndefined();
});
