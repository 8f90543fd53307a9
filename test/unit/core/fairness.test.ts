import { describe, expect, test } from 'vitest';
import {
  HOLD_GUESS_MS,
  LEASE_TTL_MS,
  type GroupSettings,
} from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** The charges of tenants, and the order that comes of them. */

const GUESS = HOLD_GUESS_MS;

const sliceMs = 600_000;

/** A group that has seen calls of about the guess. */
function learnedGroup(settings: Partial<GroupSettings> = {}): TestGroup {
  return new TestGroup(settings).learned();
}

function ann(group: TestGroup, name: string): string[] {
  return group.ask(name, { tenant: 'ann', sliceMs });
}

function bob(group: TestGroup, name: string): string[] {
  return group.ask(name, { tenant: 'bob', sliceMs });
}

/** One slot, held by nobody's tenant, and two calls of each of two tenants, ann's first. */
function contended(changes: Partial<GroupSettings> = {}): TestGroup {
  const group = learnedGroup({ slotsMax: 1, timeoutMs: 600_000, ...changes });
  group.ask('holder', { tenant: 'nobody' });
  for (const name of ['ann-1', 'ann-2']) ann(group, name);
  for (const name of ['bob-1', 'bob-2']) bob(group, name);
  return group;
}

/** The holder of the only slot lets go after a while: who is next? */
function next(group: TestGroup, heldMs = 0): string {
  group.now = (group.now + heldMs) as typeof group.now;
  const [lease] = group.state.leases.values();
  const reported = group.release(lease?.ticketId ?? '');
  return reported.find((answer) => answer.startsWith('grant'))?.slice('grant '.length, -2) ?? '';
}

describe('a tenant', () => {
  test('that has had less goes first, whoever came first', () => {
    const group = contended();
    expect([next(group), next(group, GUESS), next(group, GUESS), next(group, GUESS)]).toEqual([
      'ann-1',
      'bob-1',
      'ann-2',
      'bob-2',
    ]);
  });

  test('that floods does not push the others back', () => {
    const group = learnedGroup({ slotsMax: 1, timeoutMs: 600_000, queueLengthMax: 300 });
    ann(group, 'ann-0');
    for (let index = 1; index <= 200; index += 1) ann(group, `ann-${index}`);
    bob(group, 'bob-1');
    // It starts level, and of those who are level the older call goes first: one turn, not 200.
    expect([next(group, GUESS), next(group, GUESS)]).toEqual(['ann-1', 'bob-1']);
  });

  test('is charged with the mean hold at its grant', () => {
    const group = learnedGroup({ slotsMax: 9 });
    ann(group, 'a');
    group.ask('wide', { tenant: 'bob', slots: 3 });
    expect(group.service('ann')).toBe(GUESS);
    expect(group.service('bob')).toBe(3 * GUESS);
  });

  test('is charged with the mean of the last calls, not always with the guess', () => {
    const group = learnedGroup({ slotsMax: 9 });
    ann(group, 'a');
    group.advance(5_000);
    group.release('a');
    bob(group, 'b');
    expect(group.state.holdMeanMs).toBe(9_000);
    expect(group.service('bob') - group.state.accounts.lastService.normal).toBe(9_000);
  });

  test('is charged on at each renewal that outlasts the charge', () => {
    const group = learnedGroup();
    ann(group, 'a');
    group.advance(GUESS - 1);
    group.renew('a');
    expect(group.service('ann')).toBe(GUESS);
    group.advance(5_001);
    group.renew('a');
    expect(group.service('ann')).toBe(GUESS + 5_000);
  });

  test('is charged with what it really had at the end, more or less', () => {
    const group = learnedGroup();
    ann(group, 'short');
    group.advance(2_000);
    group.release('short');
    expect(group.service('ann')).toBe(2_000);
    bob(group, 'long');
    const before = group.service('bob') - group.lease('long').chargedMs;
    group.advance(30_000);
    group.release('long', 'failed');
    expect(group.service('bob')).toBe(before + 30_000);
  });

  test('is charged with the whole of a lease that lapsed', () => {
    const group = learnedGroup();
    ann(group, 'a');
    group.advance(LEASE_TTL_MS);
    expect(group.service('ann')).toBe(LEASE_TTL_MS);
  });

  test('pays nothing for what it gave back unused', () => {
    const group = learnedGroup();
    ann(group, 'a');
    group.advance(5_000);
    group.release('a', 'unused');
    expect(group.service('ann')).toBe(0);
  });

  test('pays nothing for it either if it began to wait in between', () => {
    const group = learnedGroup({ slotsMax: 2 });
    ann(group, 'a');
    ann(group, 'b');
    ann(group, 'waits');
    group.release('a', 'unused');
    group.release('b', 'unused');
    // What is left is the charge of the one that was granted.
    expect(group.service('ann')).toBe(GUESS);
  });

  test('with three times the weight has three times as much', () => {
    const group = learnedGroup({ slotsMax: 1, weights: { ann: 3 }, timeoutMs: 600_000 });
    group.ask('holder', { tenant: 'nobody' });
    for (let index = 0; index < 9; index += 1) {
      ann(group, `ann-${index}`);
      bob(group, `bob-${index}`);
    }
    const turns = Array.from({ length: 8 }, () => next(group, GUESS).slice(0, 3));
    expect(turns.filter((who) => who === 'ann')).toHaveLength(6);
  });

  test.each(['constructor', '__proto__', 'toString'])(
    'that is called %s has the weight of everybody and no reservation',
    (tenant) => {
      const group = learnedGroup({ slotsMax: 1 });
      group.ask('a', { tenant });
      group.ask('b', { tenant });
      expect(group.service(tenant)).toBe(GUESS);
    },
  );
});

describe('before the first call has ended', () => {
  test('a grant costs next to nothing, so the slots go round among the tenants', () => {
    const group = new TestGroup({ slotsMax: 1, timeoutMs: 600_000 });
    group.ask('holder', { tenant: 'nobody' });
    for (const name of ['ann-1', 'ann-2', 'ann-3']) ann(group, name);
    bob(group, 'bob-1');
    expect(group.reconfigure({ slotsMax: 3 })).toEqual(['grant ann-1.1', 'grant bob-1.1']);
    expect(group.service('bob')).toBe(1);
  });

  test('nobody catches up with a guess that turns out too high', () => {
    const group = new TestGroup({ slotsMax: 2, timeoutMs: 600_000 });
    for (const name of ['ann-1', 'ann-2', 'ann-3', 'ann-4']) ann(group, name);
    bob(group, 'bob-1');
    group.advance(100);
    expect(group.release('ann-1')).toContain('grant bob-1.1');
    expect(group.state.holdMeanMs).toBe(100);
  });
});

describe('who comes back from being idle', () => {
  test('starts level with those who wait', () => {
    const group = learnedGroup({ slotsMax: 1, timeoutMs: 600_000 });
    for (const name of ['a1', 'a2', 'a3', 'a4']) ann(group, name);
    next(group, 20_000);
    next(group, 20_000);
    const level = group.service('ann');
    bob(group, 'b1');
    expect(group.service('bob')).toBe(level);
  });

  test('starts where the last one was granted, if nobody waits', () => {
    const group = learnedGroup({ slotsMax: 1, timeoutMs: 600_000 });
    for (const name of ['a1', 'a2']) ann(group, name);
    next(group, 20_000);
    // The second was granted when ann had had 20 s.
    bob(group, 'b1');
    expect(group.service('bob')).toBe(20_000);
  });

  test('keeps what it owes', () => {
    const group = learnedGroup({ slotsMax: 2, timeoutMs: 600_000 });
    ann(group, 'a1');
    group.advance(40_000);
    group.release('a1');
    bob(group, 'b1');
    group.ask('c1', { tenant: 'cid' });
    bob(group, 'b2');
    ann(group, 'a2');
    expect(group.service('ann')).toBe(40_000);
    expect(group.release('b1')).toContain('grant b2.1');
  });

  test('gains nothing from corrections of before', () => {
    const group = learnedGroup({ slotsMax: 2, timeoutMs: 600_000 });
    ann(group, 'a1');
    bob(group, 'b1');
    bob(group, 'b2');
    // ann was charged with the guess, which is above where bob waits: that much can come back, no more.
    ann(group, 'a2');
    const level = group.service('bob');
    group.release('a1', 'unused');
    expect(group.service('ann')).toBeGreaterThanOrEqual(Math.min(level, GUESS));
  });
});

describe('the order of tenants', () => {
  test('is kept when one is charged while it waits', () => {
    const group = learnedGroup({ slotsMax: 3, timeoutMs: 600_000 });
    ann(group, 'ann-0');
    bob(group, 'bob-0');
    group.ask('holder', { tenant: 'nobody' });
    ann(group, 'ann-1');
    bob(group, 'bob-1');
    expect(group.waiting()).toEqual(['ann-1', 'bob-1']);
    group.advance(12_000);
    group.renew('ann-0');
    expect(group.waiting()).toEqual(['bob-1', 'ann-1']);
    expect(group.release('holder')).toContain('grant bob-1.1');
  });
});

describe('agents that share', () => {
  const options = (agent: string) => ({ tenant: 'ann', agent, sliceMs });

  function sharing(byAgent: boolean): TestGroup {
    const group = learnedGroup({ slotsMax: 1, timeoutMs: 600_000, byAgent });
    group.ask('old-0', options('old'));
    for (const name of ['old-1', 'old-2']) group.ask(name, options('old'));
    group.ask('new-1', options('new'));
    return group;
  }

  test('go in the order of what they have had', () => {
    const group = sharing(true);
    expect([next(group, GUESS), next(group, GUESS), next(group, GUESS)]).toEqual([
      'old-1',
      'new-1',
      'old-2',
    ]);
  });

  test('go in the order of their age where they do not share', () => {
    const group = sharing(false);
    expect([next(group, GUESS), next(group, GUESS)]).toEqual(['old-1', 'old-2']);
  });

  test('do not divide what their tenant has among the tenants', () => {
    const group = sharing(true);
    bob(group, 'bob-1');
    expect(next(group, 3 * GUESS)).toBe('bob-1');
  });

  test('start level with their siblings', () => {
    const group = sharing(true);
    next(group, 20_000);
    group.ask('newest', options('newest'));
    const services = [...(group.state.accounts.tenants.get('ann')?.agents.values() ?? [])];
    expect(services.find(({ key }) => key === 'newest')?.service).toBe(20_000);
  });

  test('start where the last one was granted, if no sibling waits', () => {
    const group = learnedGroup({ slotsMax: 1, timeoutMs: 600_000, byAgent: true });
    group.ask('old-0', options('old'));
    group.ask('old-1', options('old'));
    next(group, 30_000);
    group.ask('new-1', options('new'));
    const agents = group.state.accounts.tenants.get('ann')?.agents;
    expect(agents?.get('new')?.service).toBe(30_000);
  });

  test('start level when they begin to share', () => {
    const group = sharing(false);
    next(group, 30_000);
    group.reconfigure({ byAgent: true });
    const agents = group.state.accounts.tenants.get('ann')?.agents;
    expect([...(agents?.values() ?? [])].map(({ service }) => service)).toEqual([0, 0]);
  });
});
