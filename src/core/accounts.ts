import type { InstantMs } from './ids.ts';
import type { GroupSettings } from './settings.ts';
import type { Lane } from './ticket.ts';
import { ACCOUNTS_MAX, AGENT_FORGOTTEN_MS, AGENTS_MAX } from './settings.ts';

/**
 * What one tenant, or one agent of a tenant, has had of the group: its virtual service, in
 * slot-milliseconds over its weight. Start-time fair queuing: whoever has had least goes next. A grant
 * is charged with the mean hold at once, a long hold as it goes on, and the end corrects both.
 */
export interface Account {
  readonly key: string;
  service: number;
  /** Corrections do not lower the service below this: nobody gains credit from before its backlog. */
  floor: number;
  /** Waiters of this account. */
  waiting: number;
  /** Slots that it holds, cooling ones included. */
  slots: number;
}

export interface AgentAccount extends Account {
  /** When the run began, as far as the group knows. */
  startedAt: InstantMs;
  lastSeenAt: InstantMs;
}

export interface TenantAccount extends Account {
  readonly agents: Map<string, AgentAccount>;
  /** Service of its agent that was granted last, before the charge: where new agents start. */
  lastAgentService: number;
}

/** All accounts of a group. */
export interface Accounts {
  readonly tenants: Map<string, TenantAccount>;
  /** Agents of all tenants. */
  agentCount: number;
  /** In each lane the service of the tenant that was granted last, before its charge. */
  readonly lastService: Record<Lane, number>;
}

/** Key of the account of calls that belong to no agent. */
export const NO_AGENT = '';

export function emptyAccounts(): Accounts {
  const lastService = { high: 0, normal: 0, low: 0 };
  return { tenants: new Map(), agentCount: 0, lastService };
}

function newAccount(key: string): Account {
  return { key, service: 0, floor: 0, waiting: 0, slots: 0 };
}

export function tenantAccount(accounts: Accounts, key: string): TenantAccount {
  let account = accounts.tenants.get(key);
  if (account === undefined) {
    account = { ...newAccount(key), agents: new Map(), lastAgentService: 0 };
    accounts.tenants.set(key, account);
    forgetTenants(accounts, account);
  }
  return account;
}

/**
 * The account of an agent run, which has a call now. A run that is known by its id only began when the
 * group first saw it, and anew, with nothing on its account, after a minute without a call: sessions live
 * for days, turns do not.
 */
export function agentAccount(
  accounts: Accounts,
  tenant: TenantAccount,
  key: string,
  now: InstantMs,
  seenAt = now,
): AgentAccount {
  let account = tenant.agents.get(key);
  if (account === undefined) {
    account = { ...newAccount(key), startedAt: seenAt, lastSeenAt: now };
    tenant.agents.set(key, account);
    accounts.agentCount += 1;
    forgetAgents(accounts, tenant, account, now);
  } else if (isOver(account, now)) {
    Object.assign(account, { startedAt: seenAt, service: 0, floor: 0 });
  } else if (seenAt < account.startedAt) {
    account.startedAt = seenAt;
  }
  account.lastSeenAt = now;
  return account;
}

/**
 * Begins an account's backlog at the level of those who wait beside it: nobody brings credit along from
 * being idle, or from a lane that is served less.
 *
 * @param level the least service of those who wait; if nobody does, that of the last one granted
 */
export function lift(account: Account, level: number): void {
  account.service = Math.max(account.service, level);
  account.floor = account.waiting === 0 ? level : Math.max(account.floor, level);
}

/** The least service of the tenant's agents that wait; Infinity: none does. */
export function leastAgentService({ agents }: TenantAccount): number {
  let least = Infinity;
  for (const { waiting, service } of agents.values()) {
    if (waiting > 0 && service < least) least = service;
  }
  return least;
}

/** Puts all agents level. What they have had means nothing while the oldest goes first. */
export function levelAgents({ tenants }: Accounts): void {
  for (const tenant of tenants.values()) {
    tenant.lastAgentService = 0;
    for (const agent of tenant.agents.values()) Object.assign(agent, { service: 0, floor: 0 });
  }
}

/** Adds slot time to an account; negative to give back. */
export function charge(account: Account, slotMs: number, weight: number): void {
  account.service = Math.max(account.floor, account.service + slotMs / weight);
}

/** A tenant's weight: 1 unless the group says otherwise. */
export function weightOf({ weights }: GroupSettings, tenant: string): number {
  return (Object.hasOwn(weights, tenant) ? weights[tenant] : undefined) ?? 1;
}

function isIdle(account: Account): boolean {
  return account.waiting === 0 && account.slots === 0;
}

function isOver(agent: AgentAccount, now: InstantMs): boolean {
  return isIdle(agent) && now - agent.lastSeenAt > AGENT_FORGOTTEN_MS;
}

/**
 * Keeps the number of tenants bounded. Those go that would come back no better than they left; only if
 * there is none, one that owes something.
 */
function forgetTenants(accounts: Accounts, newest: TenantAccount): void {
  const { tenants, lastService } = accounts;
  if (tenants.size <= ACCOUNTS_MAX) return;
  let level = Infinity;
  for (const { waiting, service } of tenants.values()) {
    if (waiting > 0) level = Math.min(level, service);
  }
  if (level === Infinity) level = Math.max(...Object.values(lastService));
  const idle = [...tenants.values()].filter((each) => isIdle(each) && each !== newest);
  const unindebted = idle.filter(({ service }) => service <= level);
  for (const { key, agents } of unindebted.length > 0 ? unindebted : idle.slice(0, 1)) {
    tenants.delete(key);
    accounts.agentCount -= agents.size;
  }
}

/**
 * Lets go of agents whose run is over: each that comes looks at the two that were looked at longest ago.
 * Where there are too many all the same, one without a call goes, of the same tenant if possible.
 */
function forgetAgents(
  accounts: Accounts,
  tenant: TenantAccount,
  newest: AgentAccount,
  now: InstantMs,
): void {
  const forget = (agents: Map<string, AgentAccount>, { key }: AgentAccount): void => {
    agents.delete(key);
    accounts.agentCount -= 1;
  };
  let looked = 0;
  for (const agent of tenant.agents.values()) {
    if (agent === newest || looked === 2) break;
    looked += 1;
    forget(tenant.agents, agent);
    if (isOver(agent, now)) continue;
    tenant.agents.set(agent.key, agent);
    accounts.agentCount += 1;
  }
  if (accounts.agentCount <= AGENTS_MAX) return;
  for (const { agents } of [tenant, ...accounts.tenants.values()]) {
    for (const agent of agents.values()) {
      if (isIdle(agent) && agent !== newest) return forget(agents, agent);
    }
  }
}
