import { describe, expect, test } from 'vitest';
import type { AgentAccount, TenantAccount } from '../../../src/core/parts/accounts.ts';
import { instant } from '../../../src/core/words/ids.ts';
import { ACCOUNTS_MAX, AGENT_FORGOTTEN_MS, AGENTS_MAX } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** How long tenants and agents are remembered, and how many of them. */

function idle(key: string) {
  const none = () => ({ service: 0, floor: 0 });
  return {
    key,
    ...none(),
    waiting: 0,
    slots: 0,
    activeAt: instant(-Infinity),
    shares: { high: none(), normal: none(), low: none() },
  };
}

function tenantOf(group: TestGroup, key: string): TenantAccount {
  const tenant = group.state.accounts.tenants.get(key);
  if (tenant === undefined) throw new Error(`nobody knows ${key}`);
  return tenant;
}

/** A group that remembers as many tenants without a call as it may, of which none owes anything. */
function crowded(): TestGroup {
  const group = new TestGroup({ slotsMax: 1 });
  for (let index = 0; index < ACCOUNTS_MAX; index += 1) {
    const name = `t${index}`;
    const nobody = { agents: new Map(), waitingAgents: new Set<AgentAccount>() };
    const account = { ...idle(name), ...nobody, lastAgentService: 0 };
    group.state.accounts.tenants.set(name, account);
  }
  return group;
}

describe('of tenants', () => {
  test('as many as the bound are remembered', () => {
    const group = crowded();
    group.state.accounts.tenants.delete('t0');
    group.ask('a', { tenant: 'ann' });
    expect(group.state.accounts.tenants.size).toBe(ACCOUNTS_MAX);
  });

  test('those go first that owe nothing', () => {
    const group = crowded();
    tenantOf(group, 't7').shares.normal.service = 30_000;
    group.ask('a', { tenant: 'ann' });
    expect([...group.state.accounts.tenants.keys()]).toEqual(['t7', 'ann']);
  });

  test('those owe nothing that have had no more than who waits', () => {
    const group = crowded();
    group.ask('holder', { tenant: 't8' });
    tenantOf(group, 't9').shares.normal.service = 5_000;
    group.ask('waits', { tenant: 't9' });
    tenantOf(group, 't7').shares.normal.service = 5_000;
    tenantOf(group, 't6').shares.normal.service = 5_001;
    group.ask('a', { tenant: 'ann' });
    expect([...group.state.accounts.tenants.keys()]).toEqual(['t6', 't8', 't9', 'ann']);
  });

  test('one goes that owes something if there is no other', () => {
    const group = crowded();
    for (const tenant of group.state.accounts.tenants.values()) tenant.shares.normal.service = 1;
    group.ask('a', { tenant: 'ann' });
    expect(group.state.accounts.tenants.size).toBe(ACCOUNTS_MAX);
    expect(group.state.accounts.tenants.has('t0')).toBe(false);
  });

  test('none goes that has a call', () => {
    const group = crowded();
    for (const tenant of group.state.accounts.tenants.values()) tenant.waiting = 1;
    // The invariants notice that nobody waits; what matters is who is still there.
    expect(() => group.ask('a', { tenant: 'ann' })).toThrow(/tenant/);
    expect(group.state.accounts.tenants.size).toBe(ACCOUNTS_MAX + 1);
  });
});

describe('of agents', () => {
  test('those are forgotten bit by bit whose run is over', () => {
    const group = new TestGroup({ slotsMax: Infinity });
    for (const agent of ['a', 'b', 'c', 'd']) {
      group.ask(agent, { agent });
      if (agent !== 'c') group.release(agent);
    }
    group.advance(AGENT_FORGOTTEN_MS / 2);
    group.renew('c');
    group.advance(AGENT_FORGOTTEN_MS / 2 + 1);
    const { agents } = tenantOf(group, 'somebody');
    group.ask('e', { agent: 'e' });
    const after = [...agents.keys()];
    group.ask('f', { agent: 'f' });
    expect([after.length, agents.size]).toEqual([3, 3]);
    expect(new Set(agents.keys())).toEqual(new Set(['c', 'e', 'f']));
    expect(group.state.accounts.agentCount).toBe(3);
  });

  test('one goes for each that comes where there are too many', () => {
    const group = new TestGroup({ slotsMax: Infinity });
    group.ask('busy', { tenant: 'ann' });
    const { agents } = tenantOf(group, 'ann');
    for (let index = 1; index < AGENTS_MAX; index += 1) {
      const key = `run-${index}`;
      const agent: AgentAccount = { ...idle(key), startedAt: group.now, lastSeenAt: group.now };
      agents.set(key, agent);
    }
    group.state.accounts.agentCount = AGENTS_MAX;
    group.ask('next', { tenant: 'bob', agent: 'run' });
    expect(group.state.accounts.agentCount).toBe(AGENTS_MAX);
    expect([agents.has(''), agents.has('run-1'), agents.has('run-2')]).toEqual([true, false, true]);
  });

  test('those of a tenant that is forgotten are forgotten with it', () => {
    const group = crowded();
    group.ask('a', { tenant: 't1', agent: 'x' });
    group.release('a', 'unused');
    group.ask('b', { tenant: 'ann' });
    expect(group.state.accounts.agentCount).toBe(1);
  });

  test('a run that is over begins anew with nothing on its account', () => {
    const group = new TestGroup({ byAgent: true, slotsMax: 1 });
    group.ask('a', { agent: 'x' });
    group.advance(10_000);
    group.release('a');
    group.advance(AGENT_FORGOTTEN_MS + 1);
    const { agents } = tenantOf(group, 'somebody');
    expect(agents.get('x')?.service).toBe(10_000);
    group.reconfigure({ slotsMax: 0 });
    tenantOf(group, 'somebody').lastAgentService = 0;
    group.ask('b', { agent: 'x' });
    expect(agents.get('x')).toMatchObject({ service: 0, startedAt: group.now });
  });
});
