import { expect, test } from 'vitest';
import { START, TestGroup } from '../../support/core-builders.ts';

/** The worked example of `design/order.md`, number by number. Its noon is the start of the clock. */

const MINUTE_MS = 60_000;
const NOW_MS = 5 * MINUTE_MS + 10_000;

/** Two slots, in use for ten seconds, and W1 to W4 that wait. */
function example(): TestGroup {
  const group = new TestGroup({ slotsMax: 2, timeoutMs: 10 * MINUTE_MS }).learned();
  group.now = (START + NOW_MS - 10_000) as typeof group.now;
  group.ask('acme-0', { tenant: 'acme' });
  group.ask('bolt-0', { tenant: 'bolt' });
  const had: Record<string, number> = { acme: 40_000, bolt: 30_000 };
  for (const tenant of group.state.accounts.tenants.values()) {
    Object.assign(tenant.shares.normal, { service: had[tenant.key] });
  }
  group.now = (START + NOW_MS) as typeof group.now;
  group.ask('W3', { tenant: 'bolt' });
  group.ask('W4', { tenant: 'acme', enqueuedMs: 2 * MINUTE_MS + 50_000 });
  group.ask('W1', { tenant: 'acme', agent: 'one', agentMs: 0, enqueuedMs: 5 * MINUTE_MS });
  const second = { agent: 'two', agentMs: 4 * MINUTE_MS, enqueuedMs: 4.5 * MINUTE_MS };
  group.ask('W2', { tenant: 'acme', ...second });
  return group;
}

test('the waiters are as old, and their tenants have had as much, as the table says', () => {
  const group = example();
  const ages = [...group.state.queue.byTicket.values()].map(({ ticket, age }) => {
    return [ticket.id, age - START];
  });
  expect(Object.fromEntries(ages)).toEqual({
    W1: 3 * MINUTE_MS,
    W2: 4 * MINUTE_MS,
    W3: NOW_MS,
    W4: 2 * MINUTE_MS + 50_000,
  });
  expect([group.service('acme'), group.service('bolt')]).toEqual([40_000, 30_000]);
  expect(group.state.holdMeanMs).toBe(10_000);
});

test('they are granted as the steps say', () => {
  const group = example();
  expect(group.release('bolt-0')).toContain('grant W3.1');
  expect(group.service('bolt')).toBe(40_000);
  expect(group.release('acme-0')).toContain('grant W4.1');
  expect(group.service('acme')).toBe(50_000);
  group.advance(10_000);
  expect(group.release('W3')).toContain('grant W1.1');
  expect(group.release('W4')).toContain('grant W2.1');
});

test('who comes back goes between them', () => {
  const group = example();
  group.release('bolt-0');
  group.release('acme-0');
  group.advance(10_000);
  group.ask('bolt-1', { tenant: 'bolt' });
  expect(group.service('bolt')).toBe(50_000);
  expect(group.release('W3')).toContain('grant W1.1');
  expect(group.release('W4')).toContain('grant bolt-1.1');
  group.advance(10_000);
  expect(group.release('W1')).toContain('grant W2.1');
});
