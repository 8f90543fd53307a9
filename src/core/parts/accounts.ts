import { instant, type InstantMs } from '../words/ids.ts';
import type { GroupSettings } from '../words/settings.ts';
import { ACCOUNTS_MAX, AGENT_FORGOTTEN_MS, AGENTS_MAX } from '../words/settings.ts';
import { LANES, type Holder, type Lane } from '../words/ticket.ts';

/**
 * Virtual service that a tenant or agent has had, in slot-milliseconds over its weight. Start-time
 * fair queuing: whoever has had least goes next. A grant is charged with the mean hold at once, a long hold
 * as it goes on, and the end corrects both.
 */
export interface ServiceAccount {
  service: number;
  /** Corrections do not lower the service below this: nobody gains credit from before its backlog. */
  floor: number;
}

/** A tenant, or one agent of a tenant. */
export interface Account {
  readonly key: string;
  /** Waiters of this account. */
  waiting: number;
  /** Slots that it holds, cooling ones included. */
  slots: number;
  /** When it last had a waiter or a slot that it has no more; -Infinity: never. */
  activeAt: InstantMs;
}

export interface AgentAccount extends Account, ServiceAccount {
  /** The begin of the run, as far as the group knows. */
  startedAt: InstantMs;
  lastSeenAt: InstantMs;
}

export interface TenantAccount extends Account {
  /**
   * One for each lane. A charge counts in all of them; but those who wait in one lane may have had far more
   * than those in another, and to start level with the former must not put anybody behind the latter.
   */
  readonly shares: Readonly<Record<Lane, ServiceAccount>>;
  readonly agents: Map<string, AgentAccount>;
  /** Those of its agents that wait: there may be thousands that do not. */
  readonly waitingAgents: Set<AgentAccount>;
  /** Service of its agent that was granted last, before the charge: where new agents start. */
  lastAgentService: number;
}

/** All accounts of a group. */
export interface Accounts {
  readonly tenants: Map<string, TenantAccount>;
  /** Agents of all tenants. */
  agentCount: number;
  /** Service at which a newcomer starts where nobody waits, by the count of each lane. */
  readonly lastService: Record<Lane, number>;
}

/** Key of the account of calls that belong to no agent. */
export const NO_AGENT = '';

/** Begins the keys of accounts of sessions. No header value contains it. */
const SESSION_PREFIX = '\0';

/** The key of the account that a call is charged to within its tenant. */
export function agentKeyOf({ agent, session }: Pick<Holder, 'agent' | 'session'>): string {
  return agent ?? (session === undefined ? NO_AGENT : `${SESSION_PREFIX}${session}`);
}

/** Whether an account is that of an agent that its caller named. Bounds for agents apply to no other. */
export function isNamedAgent({ key }: Account): boolean {
  return key !== NO_AGENT && !key.startsWith(SESSION_PREFIX);
}

export function emptyAccounts(): Accounts {
  const lastService = { high: 0, normal: 0, low: 0 };
  return { tenants: new Map(), agentCount: 0, lastService };
}

/** Before all calls. */
const NEVER = instant(-Infinity);

function newAccount(key: string): Account {
  return { key, waiting: 0, slots: 0, activeAt: NEVER };
}

function emptyShare(): ServiceAccount {
  return { service: 0, floor: 0 };
}

export function tenantAccount(accounts: Accounts, key: string): TenantAccount {
  let account = accounts.tenants.get(key);
  if (account === undefined) {
    const shares = { high: emptyShare(), normal: emptyShare(), low: emptyShare() };
    const nobody = { agents: new Map(), waitingAgents: new Set<AgentAccount>() };
    account = { ...newAccount(key), shares, ...nobody, lastAgentService: 0 };
    accounts.tenants.set(key, account);
    forgetTenants(accounts, account);
  }
  return account;
}

/**
 * The account of an agent run, which has a call now. A run that is known by its id only began when the
 * group first saw it, and anew, with nothing on its account, after a while without a call: sessions live for
 * days, turns do not, and between two calls of a turn a tool may run for minutes.
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
    account = { ...newAccount(key), ...emptyShare(), startedAt: seenAt, lastSeenAt: now };
    tenant.agents.set(key, account);
    accounts.agentCount += 1;
    forgetAgents(accounts, tenant, account, now);
  } else if (isOver(account, now)) {
    Object.assign(account, { startedAt: seenAt, activeAt: NEVER, ...emptyShare() });
  } else if (seenAt < account.startedAt) {
    account.startedAt = seenAt;
  }
  account.lastSeenAt = now;
  return account;
}

/**
 * Catches up with those who wait beside it, when its backlog begins: nobody brings credit along from being
 * idle.
 *
 * @param level the least service of those who wait; if nobody does, that of the last one granted
 */
export function catchUp(share: ServiceAccount, level: number): void {
  share.service = Math.max(share.service, level);
  share.floor = level;
}

/** Maximum distance in service between held lines: a minute of one slot. */
const HELD_LEAD_MAX = 60_000;

/**
 * Raises the service of lines whose waiters are all held to that of the lines that may start. They gain no credit while
 * they are held. They keep their order, so a scope with few slots still shares them fairly.
 *
 * @returns whether any service changed
 */
export function catchUpHeld(held: readonly ServiceAccount[], level: number): boolean {
  const least = held.reduce((low, { service }) => Math.min(low, service), Infinity);
  if (least >= level) return false;
  for (const share of held) {
    const lead = Math.min(share.service - least, HELD_LEAD_MAX);
    share.service = Math.max(share.service, level + lead);
    share.floor = Math.max(share.floor, level);
  }
  return true;
}

/**
 * Notes a grant, before its charge. What a tenant has had by the count of a lane where it does not wait may
 * lie far behind those who were served there: that must not take the next newcomers back.
 */
export function noteServiceOf(
  { lastService }: Accounts,
  tenant: TenantAccount,
  granted: Lane,
): void {
  for (const lane of LANES) {
    const { service } = tenant.shares[lane];
    lastService[lane] = lane === granted ? service : Math.max(lastService[lane], service);
  }
}

/** The least service of the tenant's agents that wait; Infinity: none does. */
export function leastAgentService({ waitingAgents }: TenantAccount): number {
  let least = Infinity;
  for (const { service } of waitingAgents) least = Math.min(least, service);
  return least;
}

/** Puts all agents level. What they have had means nothing while the oldest goes first. */
export function levelAgents({ tenants }: Accounts): void {
  for (const tenant of tenants.values()) {
    tenant.lastAgentService = 0;
    for (const agent of tenant.agents.values()) Object.assign(agent, emptyShare());
  }
}

/** Adds slot time to what somebody has had; negative to give back. */
export function charge(share: ServiceAccount, slotMs: number, weight: number): void {
  share.service = Math.max(share.floor, share.service + slotMs / weight);
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
  const waiting = [...tenants.values()].filter((each) => each.waiting > 0);
  const levelIn = (lane: Lane): number => {
    const least = waiting.reduce((low, each) => Math.min(low, each.shares[lane].service), Infinity);
    return least === Infinity ? lastService[lane] : least;
  };
  const levels = { high: levelIn('high'), normal: levelIn('normal'), low: levelIn('low') };
  const idle = [...tenants.values()].filter((each) => isIdle(each) && each !== newest);
  const unindebted = idle.filter(({ shares }) =>
    LANES.every((lane) => shares[lane].service <= levels[lane]),
  );
  for (const { key, agents } of unindebted.length > 0 ? unindebted : idle.slice(0, 1)) {
    tenants.delete(key);
    accounts.agentCount -= agents.size;
  }
}

/**
 * Forgets agents whose run is over: each that comes looks at the two that were looked at longest ago.
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
