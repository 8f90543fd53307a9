// Calls without an agent share their tenant's turns by session, once they have to wait.
import { describe, expect, test } from 'vitest';
import { TestGroup } from '../../support/core-builders.ts';

function fullGroup(changes: ConstructorParameters<typeof TestGroup>[0] = {}): TestGroup {
  const group = new TestGroup({ slotsMax: 1, byAgent: true, ...changes });
  group.ask('holder');
  return group;
}

describe('a Worker is asked for the session', () => {
  test('of a call that has to wait while its tenant has others', () => {
    const group = fullGroup();
    expect(group.ask('a', { mayNameSession: true })).toEqual(['unread a']);
    expect(group.waiting()).toEqual([]);
    group.ask('a', { session: 'alice' });
    expect(group.waiting()).toEqual(['a']);
  });

  test('of no call that starts at once', () => {
    const group = fullGroup({ slotsMax: 2 });
    expect(group.ask('a', { mayNameSession: true })).toEqual(['grant a.1']);
  });

  test('of no call whose tenant has no other', () => {
    const group = fullGroup();
    group.ask('a', { tenant: 'other', mayNameSession: true });
    expect(group.waiting()).toEqual(['a']);
  });

  test.each([
    ['that does not wait', { wait: false }],
    ['that tries several groups', { isTry: true }],
  ])('of no call %s', (_, options) => {
    const group = fullGroup();
    expect(group.ask('a', { mayNameSession: true, ...options })).not.toContain('unread a');
  });

  test('of no call where agents do not share', () => {
    const group = fullGroup({ byAgent: false });
    group.ask('a', { mayNameSession: true });
    expect(group.waiting()).toEqual(['a']);
  });
});

describe('sessions', () => {
  test('take turns within their tenant', () => {
    const group = fullGroup();
    for (const name of ['a1', 'a2', 'a3']) group.ask(name, { session: 'alice' });
    group.ask('b1', { session: 'bob' });
    const order = ['holder', 'a1'].flatMap((name) => {
      group.advance(1_000);
      return group.release(name);
    });
    expect(order.filter((effect) => effect.startsWith('grant'))).toEqual([
      'grant a1.1',
      'grant b1.1',
    ]);
  });

  test('of one tenant gain nothing against another tenant', () => {
    const group = fullGroup();
    for (const name of ['a', 'b', 'c', 'd']) group.ask(name, { session: name });
    group.advance(1_000);
    group.ask('other', { tenant: 'other' });
    const [granted] = group.release('holder').filter((effect) => effect.startsWith('grant'));
    expect(granted).toBe('grant other.1');
  });

  test('are not bounded as agents are', () => {
    const group = new TestGroup({
      slotsMax: 3,
      byAgent: true,
      slotsMaxEachAgent: 1,
      queueLengthMaxEachAgent: 1,
    });
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) group.ask(name, { session: 'alice' });
    expect(group.inUse()).toBe(3);
    expect(group.waiting()).toEqual(['a4', 'a5']);
  });

  test('named like an agent are not that agent', () => {
    const group = fullGroup({ slotsMax: 2, slotsMaxEachAgent: 1 });
    group.ask('agent', { agent: 'alice' });
    group.ask('session', { session: 'alice' });
    group.release('holder');
    expect(group.inUse()).toBe(2);
    expect(group.waiting()).toEqual([]);
  });
});
