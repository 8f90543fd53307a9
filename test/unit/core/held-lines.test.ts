// Calls that a scope holds gain no credit for their tenant or agent run, and keep their own order.
import { describe, expect, test } from 'vitest';
import { HOLD_GUESS_MS } from '../../../src/core/words/settings.ts';
import type { UpstreamSignal } from '../../../src/core/words/signal.ts';
import { TestGroup } from '../../support/core-builders.ts';

const PRO = { names: { model: 'pro' }, sliceMs: 600_000 };
const FLASH = { names: { model: 'flash' }, sliceMs: 600_000 };
const PAUSED: Partial<UpstreamSignal> = { kind: 'requests', scope: 'model', retryAfterMs: 100_000 };

type HeldLinesOptions = Parameters<TestGroup['ask']>[1];

/** A group whose model `pro` is paused for 100 s, with a call of `flash` in its only slot. */
function paused(by: 'caller' | 'agent' = 'caller'): TestGroup {
  const settings = { slotsMax: 1, timeoutMs: 600_000, byAgent: by === 'agent' };
  const group = new TestGroup(settings).learned();
  group.ask('refused', { ...PRO, tenant: 'cat' });
  group.report('refused', PAUSED);
  group.release('refused', 'failed');
  group.ask('running', { ...FLASH, tenant: 'bob' });
  return group;
}

/** Queues calls of one kind. */
function queue(group: TestGroup, name: string, count: number, options: HeldLinesOptions): void {
  for (let index = 1; index <= count; index += 1) group.ask(`${name}-${index}`, options);
}

/** Ends the calls under way after a mean hold each, and lists the tenants or runs of those that go next. */
function turns(group: TestGroup, count: number): string {
  let order = '';
  for (let index = 0; index < count; index += 1) {
    group.now = (group.now + HOLD_GUESS_MS) as typeof group.now;
    const [lease] = group.state.leases.values();
    const granted = group
      .release(lease?.ticketId ?? '')
      .find((answer) => answer.startsWith('grant '));
    order += granted?.slice('grant '.length)[0] ?? '-';
  }
  return order;
}

describe('while all calls of a tenant are held', () => {
  test('it gains no credit', () => {
    const group = paused();
    queue(group, 'a', 9, { ...PRO, tenant: 'ann' });
    queue(group, 'b', 20, { ...FLASH, tenant: 'bob' });
    expect(turns(group, 9)).toBe('bbbbbbbbb');
    expect(['babababa', 'abababab', 'aabababa']).toContain(turns(group, 8));
  });

  test('a new tenant starts level with the tenants that are served', () => {
    const group = paused();
    queue(group, 'a', 1, { ...PRO, tenant: 'ann' });
    queue(group, 'b', 20, { ...FLASH, tenant: 'bob' });
    expect(turns(group, 8)).toBe('bbbbbbbb');
    queue(group, 'd', 4, { ...FLASH, tenant: 'dan' });
    const next = turns(group, 6);
    expect(next.match(/b/g)?.length).toBeGreaterThanOrEqual(2);
  });

  test('an agent run gains no credit either', () => {
    const group = paused('agent');
    queue(group, 'a', 9, { ...PRO, tenant: 'bob', agent: 'held' });
    queue(group, 'b', 20, { ...FLASH, tenant: 'bob', agent: 'free' });
    expect(turns(group, 9)).toBe('bbbbbbbbb');
    const next = turns(group, 8);
    expect(next.match(/b/g)?.length).toBeGreaterThanOrEqual(3);
  });
});

test('tenants that are held by one scope share its slots, whatever others are granted meanwhile', () => {
  const group = new TestGroup({ slotsMax: 9, timeoutMs: 6_000_000 }).learned();
  group.ask('before', { ...FLASH, tenant: 'cat' });
  for (const name of ['p-1', 'p-2']) group.ask(name, { ...PRO, tenant: 'cat' });
  for (const name of ['p-2', 'p-1']) {
    group.report(name, { kind: 'concurrency', scope: 'model', slotsMax: 1 });
    group.release(name, 'failed');
  }
  group.ask('p-3', { ...PRO, tenant: 'cat' });
  queue(group, 'a', 20, { ...PRO, tenant: 'ann' });
  queue(group, 'd', 3, { ...PRO, tenant: 'dan' });
  queue(group, 'b', 90, { ...FLASH, tenant: 'bob' });
  let order = '';
  let running = 'p-3';
  for (let round = 0; round < 6; round += 1) {
    // Eight calls of the other model for each of this one.
    group.now = (group.now + HOLD_GUESS_MS) as typeof group.now;
    const others = [...group.state.leases.values()].filter(
      ({ holder }) => holder.model === 'flash',
    );
    for (const { ticketId } of others) group.release(ticketId);
    const granted = group.release(running).find((answer) => /^grant [ad]/.test(answer)) ?? '';
    running = granted.slice('grant '.length, -2);
    order += running[0] ?? '-';
  }
  expect(order.match(/d/g)).toHaveLength(3);
});
